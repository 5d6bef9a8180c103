"""Element types, ranks, shapes and constant values of a model's values."""
