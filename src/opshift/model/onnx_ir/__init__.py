"""Models of onnx_ir: recognition, messages, and their conversion back."""
