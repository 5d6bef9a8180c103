"""Conversions of the example of an operator to all older opsets, as counts of nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import groupby
from typing import NamedTuple

from opshift.analysis.model_text import model_of_text
from opshift.catalogue.examples import Example
from opshift.converter.convert import plan_version
from opshift.converter.report import Report, counted_names
from opshift.model.messages import ModelProto
from opshift.registry.models import Operator
from opshift.registry.registry import Registry


class Result(NamedTuple):
    """Result of a conversion: the nodes and their operators, or the reason of a refusal."""

    nodes: int = 0
    operators: str = ""
    """Operators of the nodes with their numbers; empty if the node does not change."""
    reason: str = ""


class ExampleConversion(NamedTuple):
    """Conversion of an example with the same result at all opsets of a range."""

    first: int
    last: int
    result: Result

    @property
    def opsets(self) -> str:
        """The range as text."""
        return f"opset {self.last}" if self.first == self.last else f"opsets {self.first} to {self.last}"


def example_conversions(
    example: Example, operator: Operator, registry: Registry
) -> Iterator[ExampleConversion]:
    """Yield the conversions of an example to older opsets, the newest first."""
    newest = operator.versions[-1].since_version
    model = model_of_text(example.model, newest, registry)
    results = (
        (opset, _convert(model, operator.domain, opset, registry)) for opset in range(newest - 1, 0, -1)
    )
    for result, group in groupby(results, key=lambda pair: pair[1]):
        opsets = [opset for opset, _ in group]
        yield ExampleConversion(opsets[-1], opsets[0], result)


def _convert(model: ModelProto, domain: str, opset: int, registry: Registry) -> Result:
    report = Report.of(plan_version(model, {domain: opset}, registry=registry))
    if report.refusals:
        return Result(reason=report.refusals[0].reason)
    names = [name.partition(":")[0].rpartition(".")[2] for each in report.changed for name in each.becomes]
    return Result(report.nodes[1], counted_names(Counter(names).most_common()))
