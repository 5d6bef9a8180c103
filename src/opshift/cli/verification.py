"""What was compared, as a table."""

from __future__ import annotations

from opshift.cli.output import Column, counted
from opshift.cli.page import Page
from opshift.converter.verification.result import InputUsed, OutputCompared, Verification

COLUMNS = (
    Column("output", style="cyan"),
    Column("type"),
    Column("shape"),
    Column("elements", is_number=True),
    Column("furthest apart", is_number=True),
    Column("relative", is_number=True),
    Column("allowed", is_number=True),
    Column("result"),
)


def write_verification(page: Page, found: Verification) -> None:
    """How far apart the outputs were, and what the models were given."""
    page.heading("Comparison of the outputs")
    if found.outputs:
        page.table(COLUMNS, map(_row, found.outputs))
    given = ", ".join(map(_input, found.inputs)) or "nothing"
    page.line(f"{counted(found.samples, 'sample')} of {given}", style="dim")
    page.line(f"run in {' and '.join(dict.fromkeys(filter(None, found.runtimes)))}", style="dim")


def _row(output: OutputCompared) -> tuple[object, ...]:
    finite = "" if output.finite == output.count else f" ({output.finite:,} finite)"
    allowed = output.tolerance
    return (
        output.name,
        output.type,
        _shape(output.shape),
        f"{output.count:,}{finite}",
        f"{output.absolute:.2g}",
        f"{output.relative:.2g}",
        f"{allowed.absolute:g} + {allowed.relative:g} relative" if allowed.relative else "nothing",
        "equal" if output.equal else output.reason,
    )


def _input(used: InputUsed) -> str:
    source = "given" if used.given else "generated"
    return f"{used.name} {used.type}{_shape(used.shape)} ({source})"


def _shape(shape: tuple[int, ...] | None) -> str:
    return "" if shape is None else f"[{', '.join(map(str, shape))}]"
