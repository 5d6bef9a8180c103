"""The files of a proposal as data."""
