"""Rules of the checker, one module for each subject."""
