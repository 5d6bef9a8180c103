"""Rules of the checker; each module has the rules for a subject, such as attributes."""
