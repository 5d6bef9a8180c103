"""Rules for definitions, which the loader and `opshift lint` apply."""
