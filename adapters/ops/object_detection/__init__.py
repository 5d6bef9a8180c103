"""Adapters of the operators in ONNX's `object_detection` folder."""
