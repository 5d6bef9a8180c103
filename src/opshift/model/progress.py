"""Progress of a task: the task updates it, and another thread may display it."""


class Progress:
    """Amount of work that a task has done; the task updates the fields.

    Attributes:
        done: the amount of finished work.
        total: the amount of all work; 0 while it is unknown.
        note: a description of the current work or of the results so far.
    """

    def __init__(self) -> None:
        self.done = 0
        self.total = 0
        self.note = ""
