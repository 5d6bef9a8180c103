"""Replace groups of nodes by one node of an operator that computes the same results, such as Gelu."""
