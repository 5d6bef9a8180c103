"""Conversion of many models: workers, ledger, resumption."""
