"""Adapters of the operators in `onnx/defs/nn` of the ONNX repository, and of FlexAttention."""
