"""Cache of rewrites, keyed by everything in a node except its value names."""
