"""Adapters of the operators in ONNX's `rnn` folder."""
