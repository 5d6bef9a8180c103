"""Models from file to file, with the weights left where they are until they are copied."""
