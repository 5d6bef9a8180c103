"""Checker of the rules of ONNX's IR specification."""
