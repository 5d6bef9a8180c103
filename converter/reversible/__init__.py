"""Record of the nodes that conversions replaced, and their restoration."""
