"""Adapters of the operators in ONNX's `math` folder."""
