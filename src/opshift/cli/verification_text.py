"""Result of a verification as text."""

from __future__ import annotations

from opshift.analysis.verification.result import InputUsed, OutputCompared, Verification
from opshift.cli.output import count_text
from opshift.cli.page import Column, Page

OUTPUT_COLUMNS = (
    Column("output", style="cyan"),
    Column("type"),
    Column("shape"),
    Column("elements", is_number=True),
    Column("max difference", is_number=True),
    Column("relative", is_number=True),
    Column("allowed", is_number=True),
    Column("result"),
)


def write_verification(page: Page, verification: Verification) -> None:
    """Print the differences of the outputs, the inputs and the runtimes."""
    page.heading("Comparison of outputs")
    if verification.outputs:
        page.table(OUTPUT_COLUMNS, map(_row, verification.outputs))
    inputs = ", ".join(map(_input, verification.inputs)) or "no inputs"
    page.line(f"{count_text(verification.samples, 'sample')} of {inputs}", style="dim")
    page.line(f"run with {' and '.join(dict.fromkeys(filter(None, verification.runtimes)))}", style="dim")


def _row(output: OutputCompared) -> tuple[object, ...]:
    finite = "" if output.finite == output.count else f" ({output.finite:,} finite)"
    tolerance = output.tolerance
    return (
        output.name,
        output.type,
        _shape(output.shape),
        f"{output.count:,}{finite}",
        f"{output.absolute:.2g}",
        f"{output.relative:.2g}",
        f"{tolerance.absolute:g} + {tolerance.relative:g} relative" if tolerance.relative else "none",
        "equal" if output.equal else output.reason,
    )


def _input(used: InputUsed) -> str:
    source = "given" if used.given else "generated"
    return f"{used.name} {used.type}{_shape(used.shape)} ({source})"


def _shape(shape: tuple[int, ...] | None) -> str:
    return "" if shape is None else f"[{', '.join(map(str, shape))}]"
