"""Replacement of types that the target lacks, in models whose inputs and outputs do not have these types."""
