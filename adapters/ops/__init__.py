"""Adapters, in the folders of ONNX's operator definitions."""
