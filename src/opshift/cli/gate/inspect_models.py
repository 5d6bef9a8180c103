"""Run a command over one model or several."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from opshift.cli.gate.several import GateOptions, single_file
from opshift.cli.options import Format
from opshift.cli.progress import show_progress

if TYPE_CHECKING:
    from opshift.cli.gate.inspect_file import Inspected

    Found = TypeVar("Found", bound=Inspected)


def inspect_models(
    names: Sequence[str],
    options: GateOptions,
    inspect: Callable[[str], Found],
    columns: Sequence[str],
    task: str = "Planning {}",
) -> Found | None:
    """Return the result if `single_file` returns a file; otherwise run `run_gate`, and return `None`.

    `task` is the text of the progress display; the file replaces `{}` in it.
    """
    source = single_file(names, options)
    if source is None:
        from opshift.cli.gate.run_gate import run_gate

        run_gate(names, options, inspect, columns)
        return None
    with show_progress(task.format(source), quiet=options.quiet or options.form is Format.JSON):
        if not (options.sarif or options.ledger):
            return inspect(source)
        from opshift.cli.gate.run_gate import inspect_and_write

        return inspect_and_write(source, options, inspect)
