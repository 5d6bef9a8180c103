"""Conversion of many models in workers, with a ledger from which a later run resumes."""
