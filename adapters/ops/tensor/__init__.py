"""Adapters of the operators in ONNX's `tensor` folder."""
