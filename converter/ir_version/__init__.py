"""Choose the IR version and rewrite what it cannot express."""
