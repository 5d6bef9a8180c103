"""Random models for property tests, built of the operators that the registry defines."""
