"""What changed from one model to another for those who call it, and what its version has to say."""
