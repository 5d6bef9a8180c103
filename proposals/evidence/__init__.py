"""Evidence by execution: the reference, the body, the shape rule and the adapters are run on the examples."""
