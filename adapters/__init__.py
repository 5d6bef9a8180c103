"""One step of one operator: how a version of it is expressed as the next."""
