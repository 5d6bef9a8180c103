"""Adapters of the operators in ONNX's `sequence` folder."""
