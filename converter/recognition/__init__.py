"""Recognition of operators in the nodes that express them."""
