"""Commands that look up, compare and export operators."""
