"""Choose the IR version, and rewrite the features that it lacks."""
