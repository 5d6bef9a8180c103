"""ONNX messages (nodes, graphs, tensors, types), their wire format, model files, and errors."""
