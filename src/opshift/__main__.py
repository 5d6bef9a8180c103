"""`python -m opshift` is the command line."""

from opshift.start import main

main()
