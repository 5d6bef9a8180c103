"""Verification of conversions: the original and the converted model run on the same inputs."""
