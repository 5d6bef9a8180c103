"""The data: operator definitions, type sets, releases and message descriptors."""
