"""Adapters of the operators in ONNX's `optional` folder."""
