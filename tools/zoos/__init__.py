"""Generated collections of models, and trials of commands over them."""
