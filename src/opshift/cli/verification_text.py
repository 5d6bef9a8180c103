"""Verifications as text."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from opshift.cli.output import MAX_OPERATORS
from opshift.cli.page import Column, Page, number
from opshift.model.message_text import count_text, counted_labels
from opshift.model.operator_ids import short_label
from opshift.model.types import short_type

if TYPE_CHECKING:
    from opshift.analysis.verification.result import (
        DifferenceLocation,
        InputUsed,
        OutputCompared,
        Verification,
    )
    from opshift.model.plain_data import Json

OUTPUT_COLUMNS = (Column("output", "cyan"), "type and shape", number("beyond tolerance"), "result")

ELEMENT_COLUMNS = (
    Column("output", "cyan"),
    "element",
    number("before"),
    number("after"),
    number("difference"),
    number("relative"),
    number("allowed"),
)

MAX_OUTPUTS, MAX_ELEMENTS, MAX_INPUTS = 10, 5, 4
"""Maximum numbers of outputs, of largest differences, and of inputs that are printed."""


def write_location(page: Page, location: DifferenceLocation) -> None:
    """Print the first node with a different value, the step that changed it, and the value."""
    page.heading("First different value")
    value, worst = location.value, location.value.worst
    counts = Counter(location.becomes).most_common()
    becomes = counted_labels(counts, MAX_OPERATORS) or "the same, with different results"
    facts = [("node", location.place)]
    facts += [("executed by", each) for each in reversed(location.enclosing)]
    facts.append(("operator", f"{short_label(location.operator)} becomes {becomes}"))
    # the other steps and sentences are details, which JSON contains
    steps = [each for each in location.steps if each.startswith(location.operator.partition(":")[0] + ":")]
    facts += [("step", each.partition(". ")[0]) for each in steps or location.steps[:1]]
    if worst is None:
        facts.append(("value", f"{value.name}, {_type_text(value)}: {value.reason}"))
    else:
        extent = "within the tolerance" if value.equal else f"{_beyond_text(value)} elements differ"
        facts.append(("value", f"{value.name}, {_type_text(value)}: {extent}"))
        difference = f"difference {worst.difference:.3g}, allowed {worst.allowed:.3g}"
        became = f"{_element_text(worst.original)} became {_element_text(worst.converted)}"
        facts.append(("largest", f"{became} at {worst.position or '[]'}, {difference}"))
    if location.exceeded_at:
        facts.append(("exceeded", f"the difference grows beyond the tolerance at {location.exceeded_at}"))
    page.table(("", ""), facts)


def write_verification(page: Page, verification: Verification) -> None:
    """Print the differences of the outputs, the inputs and the runtimes; different outputs come first."""
    outputs = sorted(verification.outputs, key=lambda each: each.equal)
    page.heading("Comparison of outputs")
    page.table(OUTPUT_COLUMNS, map(_output_row, outputs[:MAX_OUTPUTS]))
    _write_rest(page, len(outputs) - MAX_OUTPUTS)
    # the differences of equal outputs matter only if all outputs are equal
    measured = [each for each in outputs if each.worst and each.equal == outputs[0].equal]
    if measured:
        page.heading("Largest differences")
        page.table(ELEMENT_COLUMNS, map(_element_row, measured[:MAX_ELEMENTS]))
        _write_rest(page, len(measured) - MAX_ELEMENTS)
    page.blank()
    for each in outputs[:MAX_OUTPUTS]:
        if each.reason and not each.worst:
            page.prose(f"{each.name}: {each.reason}")
    inputs = list(map(_input_text, verification.inputs[:MAX_INPUTS])) or ["no inputs"]
    if verification.inputs[MAX_INPUTS:]:
        inputs.append(f"and {count_text(len(verification.inputs) - MAX_INPUTS, 'more input')}")
    page.prose(f"{count_text(verification.samples, 'sample')} of {', '.join(inputs)}")
    if verification.nonfinite:
        page.line(f"{count_text(verification.nonfinite, 'sample')} with infinities and NaN")
    runtimes = " and ".join(dict.fromkeys(filter(None, verification.runtimes)))
    page.line(f"run with {runtimes}")


def _write_rest(page: Page, count: int) -> None:
    if count > 0:
        page.line(f"... and {count_text(count, 'more output')}; `--format json` lists all")


def _output_row(output: OutputCompared) -> tuple[object, ...]:
    finite = "" if output.finite == output.count else f" ({output.finite:,} finite)"
    beyond = _beyond_text(output) + finite if output.equal or output.worst else ""
    return output.name, _type_text(output), beyond, "equal" if output.equal else "different"


def _element_row(output: OutputCompared) -> tuple[object, ...]:
    worst = output.worst
    assert worst is not None
    # the ratio of two numbers near 0 means nothing while the absolute limit covers their difference
    before = abs(worst.original) if isinstance(worst.original, int | float) else 0
    is_covered = output.equal and worst.difference <= worst.allowed - output.tolerance.relative * before
    return (
        output.name,
        worst.position,
        _element_text(worst.original),
        _element_text(worst.converted),
        f"{worst.difference:.2g}",
        f"{worst.difference / before:.2g}" if before and not is_covered else "",
        f"{worst.allowed:.2g}",
    )


def _element_text(element: Json) -> str:
    # nine digits distinguish all numbers of the type float
    return f"{element:.9g}" if isinstance(element, float) else str(element)


def _type_text(output: OutputCompared) -> str:
    return output.type if output.shape is None else f"{output.type}[{', '.join(map(str, output.shape))}]"


def _beyond_text(output: OutputCompared) -> str:
    return f"{output.differing:,} of {output.count:,}"


def _input_text(used: InputUsed) -> str:
    source = "given" if used.given else "generated"
    shape = "" if used.shape is None else f"[{', '.join(map(str, used.shape))}]"
    return f"{used.name} {short_type(used.type)}{shape} ({source})"
