"""The rules of ONNX's IR specification, checked over one model."""
