"""Models in folders and object stores: finding, reading and writing them."""
