"""The graph of operator versions, routes through it, and the rewriting of one node."""
