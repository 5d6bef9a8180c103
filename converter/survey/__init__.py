"""Look at every node once and classify its operator."""
