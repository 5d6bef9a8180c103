"""Entry point of the command line, also for `python -m opshift`."""


def main() -> None:
    """Run the command line and exit with its exit code."""
    from opshift.cli.main import main as run

    run()


if __name__ == "__main__":
    main()
