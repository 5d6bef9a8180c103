"""Adapters of the operators in ONNX's `logical` folder."""
