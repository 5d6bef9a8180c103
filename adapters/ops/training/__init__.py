"""Adapters of the operators in ONNX's `training` folder."""
