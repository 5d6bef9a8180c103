"""Errors of the processes of a batch."""

from opshift.model.errors import UsageError


class WorkersNotStarted(UsageError):
    """No process started: the next ones would fail, too."""
