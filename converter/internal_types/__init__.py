"""Rewrite models without types that the target lacks, if no input or output has such a type."""
