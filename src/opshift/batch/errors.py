"""Errors of the processes of a batch."""

from opshift.model.errors import UsageError


class WorkersNotStarted(UsageError):
    """No worker process started; further processes would fail, too."""
