"""Adapters of the operators in ONNX's `nn` folder."""
