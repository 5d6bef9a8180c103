"""One model: planned, then converted, from one set of opsets to another."""
