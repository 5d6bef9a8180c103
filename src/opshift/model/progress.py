"""Progress of a task, which another thread may display."""

from dataclasses import dataclass


@dataclass
class Progress:
    """Amount of work that is done, updated by the task itself.

    `total` is 0 while it is unknown. `note` is what the task does at the moment, or what happened so far.
    """

    done: int = 0
    total: int = 0
    note: str = ""
