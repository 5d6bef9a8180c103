"""Diagnose which opsets a model is valid for."""
