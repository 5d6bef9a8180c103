"""Adapters of operators that ONNX removed."""
