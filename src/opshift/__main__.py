"""Entry point of `python -m opshift`."""

from opshift_start import main

if __name__ == "__main__":
    main()
