"""Rewrite a model whose types the target lacks, if its inputs and outputs have other types."""
