"""The version graph, routes, and the rewriting of a node, with validation and a cache."""
