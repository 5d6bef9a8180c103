"""`python -m opshift` is the command line."""

from opshift.cli.main import main

main()
