"""Reader of models and nodes as text: ONNX's own syntax, calls of Python, and protobuf's text and JSON."""
