"""Adapters of the operators in `onnx/defs/object_detection` of the ONNX repository."""
