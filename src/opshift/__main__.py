"""Entry point of the command line, also for `python -m opshift`."""

from opshift.start import exit_on_interrupt


def main() -> None:
    """Run the command line and exit with its exit code."""
    exit_on_interrupt()
    from opshift.cli.main import main as run  # imported only after Ctrl+C is handled

    run()


if __name__ == "__main__":
    main()
