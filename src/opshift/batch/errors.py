"""Error of worker processes."""

from opshift.model.errors import UsageError


class WorkersNotStarted(UsageError):
    """No worker process started; further processes would fail, too."""
