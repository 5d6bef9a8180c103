"""Adapters of the operators in ONNX's `quantization` folder."""
