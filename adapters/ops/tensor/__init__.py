"""Adapters of the operators in `onnx/defs/tensor` of the ONNX repository."""
