"""Refusals of nodes and features, and groups of refusals with the same cause."""

from collections import Counter
from collections.abc import Iterable, Sequence

from opshift.model.errors import UNKNOWN_SHAPE, OpshiftError
from opshift.model.operator_ids import DEFAULT_DOMAIN
from opshift.model.plain_data import Json
from opshift.model.shared_data import FrozenRecord
from opshift.registry.explanations import refusal_cause


class Refusal(FrozenRecord):
    """Node or feature of a model that cannot be converted.

    Attributes:
        place: label of the node, with its graph or function.
        operator: operator version such as `ai.onnx.Softmax:13`; domain and name of a function or unknown
            operator; for a feature, the IR version that has it; for types, the requested change.
        reason: reason why it cannot be converted, in one sentence.
        remedy: advice to the user; may be empty.
        code: the cause, such as `type.unsupported`; `docs/refusals.md` lists all.
        subject: property by which refusals are grouped: an element type, a feature, or by default the reason
            without the names of values.
        target: opset of the domain, or IR version, that was requested.
        nearest: opset or IR version nearest to the target that supports the node; 0 if it is unknown.
    """

    place: str
    operator: str
    reason: str
    remedy: str
    code: str
    subject: str = ""
    target: int = 0
    nearest: int = 0

    @property
    def title(self) -> str:
        """Title of the cause."""
        return refusal_cause(self.code).title

    @property
    def domain(self) -> str:
        """Domain of the operator; empty for a feature of the model."""
        return self.operator.partition(":")[0].rpartition(".")[0]

    def __str__(self) -> str:
        advice = f" ({self.remedy})" if self.remedy else ""
        return f"{self.place}: {self.operator}: {self.reason}{advice}"


class RefusalGroup(FrozenRecord):
    """Refusals with the same cause.

    Attributes:
        code: the cause, such as `type.unsupported`.
        title: title of the cause.
        summary: description of all refusals, in one sentence.
        remedy: advice to the user; may be empty.
        refusals: one refusal for each node or feature.
    """

    code: str
    title: str
    summary: str
    remedy: str
    refusals: tuple[Refusal, ...]

    def __str__(self) -> str:
        first, *others = self.refusals
        advice = f" ({self.remedy})" if self.remedy else ""
        return f"{self.summary}{advice}; first at {first.place}" if others else str(first)

    def as_dict(self) -> dict[str, Json]:
        """Return plain data for JSON, with only the place of each refusal."""
        places: list[Json] = [each.place for each in self.refusals]
        fields = {"code": self.code, "title": self.title, "summary": self.summary, "remedy": self.remedy}
        return {**fields, "count": len(places), "places": places}


def group_refusals(refusals: Iterable[Refusal]) -> tuple[RefusalGroup, ...]:
    """Group refusals by cause, domain, target, and the subject if the summary of the cause contains it."""
    groups: dict[tuple[object, ...], list[Refusal]] = {}
    for each in refusals:
        subject = each.subject if "{subject}" in refusal_cause(each.code).summary else ""
        groups.setdefault((each.code, subject, each.domain, each.target), []).append(each)
    return tuple(map(_group_of, groups.values()))


def _group_of(members: list[Refusal]) -> RefusalGroup:
    first, cause = members[0], refusal_cause(members[0].code)
    summary, remedy = first.reason, first.remedy
    if len(members) > 1:
        target = _version_text(first.target, first)
        summary = cause.summary.format(count=f"{len(members):,}", subject=first.subject, target=target)
        remedies = Counter(each.remedy for each in members if each.remedy)
        if len(remedies) > 1 or remedies.total() < len(members):
            # A remedy that names the values to declare helps more than the general remedy of the cause.
            is_shape = remedies and first.code == UNKNOWN_SHAPE
            remedy = max(remedies, key=remedies.__getitem__) if is_shape else cause.remedy
    nearest = [each.nearest for each in members]
    if all(nearest):
        lowest = min(nearest) > first.target
        number = max(nearest) if lowest else min(nearest)
        unit = "IR version" if first.code.startswith("ir.") else "opset"
        pronoun = "them" if len(members) > 1 else "it"
        summary += f"; the {'lowest' if lowest else 'highest'} {unit} that supports {pronoun} is {number}"
    return RefusalGroup(first.code, cause.title, summary, remedy, tuple(members))


def _version_text(target: int, refusal: Refusal) -> str:
    if refusal.code.startswith("ir."):
        return f"IR version {target}"
    return f"opset {target}" + (f" of {refusal.domain}" if refusal.domain != DEFAULT_DOMAIN else "")


class ConversionRefused(OpshiftError):
    """Error for a model that cannot be converted; the model remains unchanged.

    Attributes:
        refusals: all nodes and features that cannot be converted.
    """

    def __init__(self, refusals: Sequence[Refusal]) -> None:
        self.refusals = tuple(refusals)
        first, *others = self.groups
        more = sum(len(each.refusals) for each in others)
        example = first.refusals[0]
        reason = first.summary if len(first.refusals) > 1 else f"{example.operator}: {example.reason}"
        reason += f", and {more:,} more" if more else ""
        super().__init__(reason, place=example.place, remedy=first.remedy)

    @property
    def groups(self) -> tuple[RefusalGroup, ...]:
        """Refusals grouped by cause."""
        return group_refusals(self.refusals)
