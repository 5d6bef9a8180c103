"""Adapters of the operators in ONNX's `reduction` folder."""
