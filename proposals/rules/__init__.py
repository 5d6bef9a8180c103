"""The rules that a proposal has to keep, a module for each group."""
