"""Analyses of models: diagnosis, inference, comparison, verification and fitting to runtimes."""
