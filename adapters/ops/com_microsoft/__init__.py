"""Adapters that rewrite operators of the domain com.microsoft as operators of ONNX, and some in reverse."""
