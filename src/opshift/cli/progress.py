"""Progress of long tasks, on stderr."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread

from opshift.cli.page import Page, displayable
from opshift.model.progress import Progress

SECONDS_BEFORE_DISPLAY = 1.0
"""Tasks that take less time show nothing, and do not wait for the import of rich."""

SECONDS_BETWEEN_UPDATES = 0.1

BYTES = "bytes"
"""Unit of tasks that count bytes, which are shown as KB, MB or GB."""


@contextmanager
def show_progress(
    message: str, *, quiet: bool = False, unit: str = "", page: Page | None = None
) -> Iterator[Progress]:
    """Yield a `Progress` that the block updates; show it in a terminal on stderr, unless `quiet` is true.

    `unit` is a plural noun for the amount of work, such as `models`; without a unit, the amount is not shown.
    In a terminal, the block may print to `page`; the progress stays below its text.
    """
    progress = Progress()
    if quiet or not sys.stderr.isatty():
        yield progress
        return
    ended = Event()
    # in a thread, because the task may spend all its time in one call
    display = Thread(target=_display, args=(progress, message, unit, page, ended), daemon=True)
    display.start()
    try:
        yield progress
    finally:
        ended.set()
        display.join()  # the thread clears its line before anything else is printed


def _display(progress: Progress, message: str, unit: str, page: Page | None, ended: Event) -> None:
    """Show progress until `ended` is set; show nothing for a short task or in a dumb terminal."""
    if ended.wait(SECONDS_BEFORE_DISPLAY):
        return
    from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars
    from rich.table import Column

    from opshift.cli.terminal import TerminalPage, console_for

    console = page.console if isinstance(page, TerminalPage) else console_for(on_stderr=True)
    if console.is_dumb_terminal:
        return
    columns = (
        TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True, ratio=1)),
        BarColumn(bar_width=12),
        TaskProgressColumn(),
        TextColumn("{task.fields[amount]}", markup=False, table_column=Column(no_wrap=True)),
        TimeRemainingColumn(compact=True),
    )
    # the task may write a model to stdout, which rich would redirect
    bars = Bars(
        *columns,
        console=console,
        transient=True,
        auto_refresh=False,
        redirect_stdout=False,
        redirect_stderr=False,
        expand=True,
    )
    with bars:
        task = bars.add_task(displayable(message), total=None, amount="")
        while True:
            done, total = progress.done, progress.total
            bars.update(
                task,
                completed=done,
                total=total or None,
                amount=displayable(_amount_text(progress, unit)),
                refresh=True,
            )
            if ended.wait(SECONDS_BETWEEN_UPDATES):
                return


def _amount_text(progress: Progress, unit: str) -> str:
    """Format the amount of work, such as `3 models, 1 with errors` or `1.2 GB of 4.0 GB`."""
    text = byte_text if unit == BYTES else "{:,}".format
    amount = text(progress.done) + (f" of {text(progress.total)}" if progress.total else "")
    if unit != BYTES:
        amount += f" {unit}"
    if not unit or not (progress.done or progress.total):
        amount = ""
    return ", ".join(filter(None, (amount, progress.note)))


def byte_text(count: int) -> str:
    """Format a number of bytes with decimal units, as in `1.2 MB`."""
    from rich.filesize import decimal

    return decimal(count)
