"""Versions of an operator, and the conversions of nodes between versions."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, fields
from typing import Final, Literal

from opshift.adapters.core.adapter_table import StepKey, error_bound
from opshift.catalogue.words import format_types, types_change_text
from opshift.model.plain_data import json_values
from opshift.registry.changes.diff import diff
from opshift.registry.models import Operator, OperatorVersion
from opshift.registry.record import to_plain_data
from opshift.registry.step_rules import is_derivable, lost_types
from opshift.registry.steps import Refuse, StepAction, Verb
from opshift.rewriting.routes import LazyAdapterTable

ADAPTERS: Final = LazyAdapterTable()
"""Adapters, imported one by one: importing all would take a fifth of the time of `opshift show`."""

METHODS: Final = {
    "derived": "the versions differ only in element types, and the node is unchanged; if the older version "
    "lacks the type of a value, the node computes in a wider type if the result is the same, and is refused "
    "otherwise",
    "compatible": "the node is unchanged; missing types are handled as above",
    "declared": "a small rewrite in the definition, which is validated against both versions",
    "adapter": "a function rewrites the node, and refuses nodes without an exact equivalent; rewrites that "
    "*may be approximate* require `--allow approximate`, and have an error of at most the stated bound",
    "refused": "the node has no equivalent, for the reason in the last column",
}
"""Kinds of conversions between versions, each with its meaning."""


@dataclass(frozen=True)
class StepSummary:
    """Conversion of nodes between two versions of an operator; `how` is a key of `METHODS`."""

    how: str
    detail: str = ""
    error: str = ""
    """The bound of the error of rewrites that require `--allow approximate`, such as "at most 2 units"."""

    @property
    def description(self) -> str:
        """The detail without the name of the adapter."""
        return self.detail.partition(": ")[2] if self.how == "adapter" else self.detail

    def __str__(self) -> str:
        return f"{self.how}: {self.detail}" if self.detail else self.how


@dataclass(frozen=True)
class HistoryEntry:
    """Version of an operator, its change from the previous version, and conversions in both directions."""

    version: OperatorVersion
    before: OperatorVersion | None = None
    change: str = ""
    up: StepSummary | None = None
    down: StepSummary | None = None
    leaving: StepSummary | None = None
    """Conversion to the opset that removes the operator, if this is the last version before it."""
    arriving: StepSummary | None = None
    """Conversion of the first version to the previous opset or, from opset 1, to other domains.

    It is `None` unless the definition declares `before`.
    """

    def as_dict(self) -> dict[str, object]:
        """Return plain data for JSON."""
        version = self.version
        return {
            "operator": str(version.id),
            "since_version": version.since_version,
            "status": version.status,
            "change": self.change,
            "differences": [str(each) for each in diff(self.before, version)] if self.before else [],
            "up": self.up and asdict(self.up),
            "down": self.down and asdict(self.down),
            "deprecation": version.deprecation and to_plain_data(version.deprecation),
            "removal": version.removal and to_plain_data(version.removal, exclude={"up"}),
            "leaving": self.leaving and asdict(self.leaving),
            "arriving": self.arriving and asdict(self.arriving),
        }


def history_of(operator: Operator) -> Iterator[HistoryEntry]:
    """Yield an entry for each version of an operator, oldest first."""
    before = None
    for version in operator.versions:
        step = version.step
        leaving = arriving = None
        if version.removal:
            leaving = _step_summary(version, None, version.removal.removed_in, version.removal.up)
        if version.before is not None:
            arriving = _step_summary(version, None, version.since_version - 1, version.before)
        if before is None:
            yield HistoryEntry(version, leaving=leaving, arriving=arriving)
        else:
            up = _step_summary(before, version, version.since_version, step.up if step else None)
            down = _step_summary(version, before, before.since_version, step.down if step else None)
            change = step.change if step and step.change else _changed_types(before, version)
            yield HistoryEntry(version, before, change, up, down, leaving)
        before = version


def _step_summary(
    source: OperatorVersion,
    target: OperatorVersion | None,
    opset: int,
    answer: StepAction | Literal["body"] | None,
) -> StepSummary:
    if answer == "adapter":
        key = StepKey(source.domain, source.name, source.since_version, opset)
        return StepSummary("adapter", _adapter_text(key), error_bound(key))
    if answer == "body":
        return StepSummary("declared", "replaced by the nodes of its function body")
    if isinstance(answer, Refuse):
        return StepSummary("refused", answer.refuse)
    if isinstance(answer, tuple):
        return StepSummary("declared", ", ".join(map(_verb_text, answer)))
    # Without a declared step, nodes stay unchanged if only the types of the versions differ.
    if answer is None and (target is None or not is_derivable(source, target)):
        return StepSummary("refused", "no step is defined")
    detail = _type_guard_text(source, target) if target else ""
    return StepSummary("compatible" if answer else "derived", detail)


def _adapter_text(pair: StepKey) -> str:
    """Return module and name of an adapter, and the first paragraph of its docstring."""
    function = ADAPTERS.get(pair)
    if function is None:
        return "in Python code that is not loaded"
    module = function.__module__.rpartition(".")[2]
    name = getattr(function, "__name__", "")
    sentence = " ".join((function.__doc__ or "").strip().split("\n\n")[0].split())
    return f"{module}.{name}{f': {sentence}' if sentence else ''}"


def _verb_text(verb: Verb) -> str:
    """Format a rewrite such as `drop_attribute is_test` or `rename_value mode {...}`."""
    # `to_plain_data` would import pydantic, which takes longer than the rest of `opshift show`
    given = [(each.name, getattr(verb, each.name), each.default) for each in fields(verb)]
    values = json_values({name: value for name, value, default in given if value != default})
    first = values.pop(verb.shorthand, "")
    rest = ", ".join(f"{name} {value}" for name, value in values.items())
    return f"{verb.name} {first}{f' ({rest})' if rest else ''}"


def _type_guard_text(source: OperatorVersion, target: OperatorVersion) -> str:
    """Describe how nodes with types that the target version does not accept are converted, or refused."""
    types = {kind for types_lost in lost_types(source, target).values() for kind in types_lost}
    if not types:
        return ""
    outcome = "computed in a wider type if the result is the same" if source.bridge else "refused"
    return f"{outcome}: nodes with {format_types(types)}"


def _changed_types(old: OperatorVersion, new: OperatorVersion) -> str:
    """Describe the change between two versions that differ in element types only."""
    changes = [change for change in diff(old, new) if change.kind in ("input_types", "output_types")]
    added = {kind for change in changes for kind in change.new - change.old}
    removed = {kind for change in changes for kind in change.old - change.new}
    return types_change_text(_without_containers(added), _without_containers(removed), "accepts ")


def _without_containers(types: Iterable[str]) -> list[str]:
    """Omit sequence and optional types if their element type also occurs as a tensor type."""
    elements = {each: re.sub(r"^.*\(|\)+$", "", each) for each in types}
    tensors = {element for each, element in elements.items() if each == f"tensor({element})"}
    return [
        each for each, element in elements.items() if each == f"tensor({element})" or element not in tensors
    ]
