"""Features that an IR version introduced or removed, and where a model uses them."""
