"""Reader of models and nodes as text: ONNX's text syntax, Python calls, and protobuf's text and JSON."""
