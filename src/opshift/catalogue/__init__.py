"""Operator catalogue: history and signatures of operators as text, and a static site of all operators."""
