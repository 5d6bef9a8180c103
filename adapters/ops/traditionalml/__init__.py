"""Adapters of the operators in ONNX's `traditionalml` folder."""
