"""Rules for proposals, one module per group."""
