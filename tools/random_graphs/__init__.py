"""Random models, built of the operators that the registry defines."""
