"""Operator sets as documents: one domain at one opset, in a file that another registry reads."""
