"""Check models against the rules of ONNX's IR specification and the definitions of operators."""
