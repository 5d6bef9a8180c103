"""Whether the opsets and the IR version that a model states are those that it is written for."""
