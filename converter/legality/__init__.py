"""Whether a model keeps the rules of ONNX's IR specification."""
