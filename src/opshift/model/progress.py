"""Progress of a task: the task updates it, and another thread may display it."""

from dataclasses import dataclass


@dataclass
class Progress:
    """Amount of work that a task has done; the task updates the fields.

    `total` is 0 while it is unknown. `note` describes the current work or the results so far.
    """

    done: int = 0
    total: int = 0
    note: str = ""
