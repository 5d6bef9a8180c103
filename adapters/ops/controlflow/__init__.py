"""Adapters of the operators in ONNX's `controlflow` folder."""
