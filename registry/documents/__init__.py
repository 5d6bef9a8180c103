"""Operator-set documents: one domain at one opset, in a file that another registry can read."""
