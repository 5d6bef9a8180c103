"""Operators of onnxruntime, in the domain com.microsoft, as operators of ONNX."""
