"""Adapters of the operators in ONNX's `generator` folder."""
