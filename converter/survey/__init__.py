"""Classification of the operator of every node, in one pass."""
