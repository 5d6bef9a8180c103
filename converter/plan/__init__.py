"""Plan the changes of a conversion, and collect all refusals."""
