"""Adapters, grouped like the operator definitions in `onnx/defs` of the ONNX repository, and by domain."""
