"""Features that IR versions introduced, and the places where a model uses them."""
