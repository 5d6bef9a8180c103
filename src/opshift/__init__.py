"""An operator-set registry and version converter for ONNX."""
