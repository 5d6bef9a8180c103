"""All versions of an operator, and how the steps between them are answered."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Literal

from opshift.adapters.table import Pair, adapter_table
from opshift.adapters.type_guard import lost_types
from opshift.cli.typenames import short
from opshift.registry.diff import diff
from opshift.registry.models import Operator, OperatorVersion
from opshift.registry.record import plain
from opshift.registry.rules import is_derivable
from opshift.registry.steps import Answer, Refuse, Verb


@dataclass(frozen=True)
class Answered:
    """How a step is taken: compatible, derived, declared, adapter or refused; and what that means."""

    how: str
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.how}: {self.detail}" if self.detail else self.how


@dataclass(frozen=True)
class Entry:
    """One version; what is different from the one before, the step from there and the step back."""

    version: OperatorVersion
    before: OperatorVersion | None = None
    change: str = ""
    up: Answered | None = None
    down: Answered | None = None
    leaving: Answered | None = None
    """Where the operator is taken out of its set: how its nodes move beyond."""
    arriving: Answered | None = None
    """Of a first version that says so: how its nodes are expressed where there is no such operator yet."""

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        version = self.version
        return {
            "operator": str(version.id),
            "since_version": version.since_version,
            "status": version.status,
            "change": self.change,
            "differences": [str(each) for each in diff(self.before, version)] if self.before else [],
            "up": self.up and asdict(self.up),
            "down": self.down and asdict(self.down),
            "deprecation": version.deprecation and plain(version.deprecation),
            "removal": version.removal and plain(version.removal, exclude={"up"}),
            "leaving": self.leaving and asdict(self.leaving),
            "arriving": self.arriving and asdict(self.arriving),
        }


def history(operator: Operator) -> Iterator[Entry]:
    """The versions, oldest first."""
    before = None
    for version in operator.versions:
        step = version.step
        leaving = arriving = None
        if version.removal:
            leaving = _answered(version, None, version.removal.removed_in, version.removal.up)
        if version.before is not None:
            arriving = _answered(version, None, version.since_version - 1, version.before)
        if before is None:
            yield Entry(version, leaving=leaving, arriving=arriving)
        else:
            up = _answered(before, version, version.since_version, step.up if step else None)
            down = _answered(version, before, before.since_version, step.down if step else None)
            change = step.change if step and step.change else _changed_types(before, version)
            yield Entry(version, before, change, up, down, leaving)
        before = version


def _answered(
    source: OperatorVersion,
    target: OperatorVersion | None,
    opset: int,
    answer: Answer | Literal["body"] | None,
) -> Answered:
    if answer == "adapter":
        return Answered("adapter", _adapter(Pair(source.domain, source.name, source.since_version, opset)))
    if answer == "body":
        return Answered("declared", "the nodes of its body")
    if isinstance(answer, Refuse):
        return Answered("refused", answer.refuse)
    if isinstance(answer, tuple):
        return Answered("declared", ", ".join(_verb(verb) for verb in answer))
    if answer is None and (target is None or not is_derivable(source, target)):
        return Answered("refused", "no step is defined")
    return Answered("compatible" if answer else "derived", _guarded(source, target) if target else "")


def _adapter(pair: Pair) -> str:
    """Where the adapter is, and the sentence that describes it."""
    function = adapter_table().get(pair)
    if function is None:
        return "not written yet"
    module = function.__module__.rpartition(".")[2]
    name = getattr(function, "__name__", "")
    sentence = " ".join((function.__doc__ or "").strip().split("\n\n")[0].split())
    return f"{module}.{name}{f': {sentence}' if sentence else ''}"


def _verb(verb: Verb) -> str:
    """`drop_attribute is_test`, `rename_value mode {...}`."""
    fields = plain(verb, exclude_defaults=True)
    first = fields.pop(verb.shorthand, "")
    rest = ", ".join(f"{name} {value}" for name, value in fields.items())
    return f"{verb.name} {first}{f' ({rest})' if rest else ''}"


def _guarded(source: OperatorVersion, target: OperatorVersion) -> str:
    """What the step refuses although it leaves nodes as they are."""
    types = {each for lost in lost_types(source, target).values() for each in lost}
    if not types:
        return ""
    bridged = f", or casts to a wider type ({source.bridge})" if source.bridge else ""
    return f"refuses {short(types)}{bridged}"


def _changed_types(old: OperatorVersion, new: OperatorVersion) -> str:
    """The difference of two versions that differ by element types alone."""
    changes = [change for change in diff(old, new) if change.kind in ("input_types", "output_types")]
    added = {each for change in changes for each in change.new - change.old}
    lost = {each for change in changes for each in change.old - change.new}
    parts = [f"takes {short(added)} as well"] if added else []
    return ", ".join(parts + ([f"no longer takes {short(lost)}"] if lost else []))
