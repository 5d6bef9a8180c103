"""Adapters that rewrite operators of the domain com.microsoft as ONNX operators, and a few in reverse."""
