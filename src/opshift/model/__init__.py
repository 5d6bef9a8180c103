"""ONNX messages and how to read them: nodes, graphs, tensors, types, the wire format and model files."""
