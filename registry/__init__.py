"""Load the operator definitions in `opsets/` as typed, immutable objects."""
