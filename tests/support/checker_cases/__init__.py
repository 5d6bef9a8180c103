"""For each rule a model that keeps it and what breaks it."""
