"""The IR version of a model: what it needs and how it is lowered, a file for each thing added."""
