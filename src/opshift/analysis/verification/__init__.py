"""Run two models on the same inputs and compare the outputs."""
