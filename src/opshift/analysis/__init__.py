"""Reports about one model or two."""
