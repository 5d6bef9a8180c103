"""Evidence from running the reference, the body, the shape rule and the adapters on the examples."""
