"""Content of the pages about operators, their versions, and opsets.

The page of an operator shows the results of converting its example to all older opsets.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, groupby
from typing import Final, NamedTuple

from opshift.analysis.model_text import model_of_text
from opshift.analysis.pages.diagram import body_boxes, function_boxes, svg
from opshift.catalogue.data_package import version_data
from opshift.catalogue.examples import OperatorExample, example_of
from opshift.catalogue.function_text import FunctionText, function_text
from opshift.catalogue.history import HistoryEntry, StepSummary, history_of
from opshift.catalogue.signature import (
    attribute_texts,
    availability,
    option_text,
    replacement_text,
    signature_text,
    value_text,
)
from opshift.catalogue.words import category_of, change_subject
from opshift.converter.convert import plan_version
from opshift.converter.report import Report, counted_names
from opshift.model.messages import ModelProto
from opshift.model.plain_data import Json
from opshift.model.types import short_type
from opshift.registry.changes.classes import ChangeClass
from opshift.registry.changes.classify import ClassifiedChange, classify, most_severe_class
from opshift.registry.models import Operator, OperatorVersion, Parameter
from opshift.registry.registry import Registry
from opshift.registry.requirements import requirements_of
from opshift.registry.shapes.all_rules import SHAPE_RULES


class Result(NamedTuple):
    """Result of a conversion: number of nodes and their operators, or the reason of a refusal."""

    nodes: int = 0
    operators: str = ""
    """Operators of the resulting nodes, with counts, as text; empty if the node does not change."""
    reason: str = ""


class ExampleConversion(NamedTuple):
    """Conversion of an example to each opset from `first` to `last`, with equal results."""

    first: int
    last: int
    result: Result

    @property
    def opsets(self) -> str:
        """The range as text."""
        return f"opset {self.last}" if self.first == self.last else f"opsets {self.first} to {self.last}"


def example_conversions(
    example: OperatorExample, operator: Operator, registry: Registry
) -> Iterator[ExampleConversion]:
    """Yield the conversions of an example to older opsets, from newer to older ranges of opsets."""
    newest = operator.versions[-1].since_version
    model = model_of_text(example.model, newest, registry)
    results = (
        (opset, _conversion_result(model, operator.domain, opset, registry))
        for opset in range(newest - 1, 0, -1)
    )
    for result, group in groupby(results, key=lambda pair: pair[1]):
        opsets = [opset for opset, _ in group]
        yield ExampleConversion(opsets[-1], opsets[0], result)


def _conversion_result(model: ModelProto, domain: str, opset: int, registry: Registry) -> Result:
    report = Report.of(plan_version(model, {domain: opset}, registry=registry))
    if report.refusals:
        return Result(reason=report.refusals[0].reason)
    names = [name.partition(":")[0].rpartition(".")[2] for each in report.changed for name in each.becomes]
    return Result(report.nodes[1], counted_names(Counter(names).most_common()))


SHORT_RULES: Final[Mapping[str, str]] = {
    "all_same_as_first": "All outputs have the shape of the first input.",
    "dynamic_quantize": "The first output has the shape of the input; the other outputs are scalars.",
    "loss": "The loss has the shape of the second input if `reduction` is `none`, and is a scalar otherwise.",
    "multinomial": "The first dimension is that of the input, and the second one is `sample_size`.",
    "non_max_suppression": "The number of rows depends on the values; each row has 3 elements.",
    "non_zero": "There is a row for each dimension of the input; their length depends on the values.",
    "pairwise": "Each output has the shape of the input at the same position.",
    "same_as_first": "The output has the shape of the first input.",
    "same_as_second": "The output has the shape of the second input.",
    "scalar": "The output is a scalar.",
    "stated": "The attribute `shape` is the shape of the output.",
    "window": "The output has one dimension; the first input is its size.",
}
"""Descriptions of shape rules that are lambdas and so have no docstring."""


class ChangeLine(NamedTuple):
    """Change that the attributes or parameters in `subjects` share."""

    subjects: tuple[str, ...]
    about: str
    """Changed part, such as `default` or `types`; empty if `old` and `new` are clear without it."""
    old: str
    new: str


class EffectGroup(NamedTuple):
    """Changes with the same effect on models."""

    change_class: ChangeClass
    effect: str
    lines: tuple[ChangeLine, ...]


class ConversionRow(NamedTuple):
    """Conversion of nodes to another version or opset.

    `target` is `None` if the opset lacks the operator; `opset` is 0 for a conversion to other domains.
    """

    source: OperatorVersion
    target: OperatorVersion | None
    opset: int
    summary: StepSummary


class TypeRow(NamedTuple):
    """Element type, and whether each version of an operator allows it."""

    type: str
    allowed: tuple[bool, ...]


class TypeVariable(NamedTuple):
    """Type variable of a version: pairs of a type and whether it is new, and the removed types."""

    name: str
    description: str
    types: tuple[tuple[str, bool], ...]
    removed: tuple[str, ...]


def _same_parameters(
    old: Sequence[Parameter], new: Sequence[Parameter]
) -> Iterator[tuple[Parameter, Parameter]]:
    """Yield the pairs of parameters with the same name, or renamed ones at the same position."""
    old_names, new_names = {each.name: each for each in old}, {each.name for each in new}
    for position, after in enumerate(new):
        before = old_names.get(after.name)
        if before is None and position < len(old) and old[position].name not in new_names:
            before = old[position]
        if before is not None:
            yield before, after


@dataclass(frozen=True)
class VersionView:
    """Operator version, with the content of its page."""

    entry: HistoryEntry
    operator: OperatorView

    @property
    def version(self) -> OperatorVersion:
        """The operator version."""
        return self.entry.version

    @property
    def availability(self) -> str:
        """Opsets of the version, its status and its determinism."""
        return availability(self.version, self.operator.entries)

    @property
    def notices(self) -> Iterator[str]:
        """Texts about the deprecation and the removal of the operator, if there are any."""
        if self.version.deprecation:
            yield replacement_text("deprecated", self.version.deprecation)
        if self.version.removal:
            event = f"removed in opset {self.version.removal.removed_in}"
            yield replacement_text(event, self.version.removal)

    @property
    def signature(self) -> str:
        """The signature as a node."""
        return signature_text(self.version)

    @property
    def parameters(self) -> Iterator[tuple[str, Sequence[tuple[str, str, str, str]]]]:
        """Title and rows of the input and output tables; a row has name, type, option and description."""
        for title, listed in (("Inputs", self.version.inputs), ("Outputs", self.version.outputs)):
            yield title, [(each.name, each.type, option_text(each), each.description) for each in listed]

    @property
    def attributes(self) -> Sequence[tuple[str, ...]]:
        """Rows of attributes: name, type, default, allowed values, description; defaults are in backticks."""
        rows = []
        for name, attribute in self.version.attributes.items():
            _, kind, default, values, text = attribute_texts(name, attribute)
            is_value = attribute.default is not None and default
            rows.append((name, kind, f"`{default}`" if is_value else default, values, text))
        return rows

    @property
    def types(self) -> list[TypeVariable]:
        """The type variables, compared with the previous version."""
        rows = []
        for name, types in self.version.type_constraints.items():
            before = self._types_before(name)
            described = tuple(
                (short_type(each), bool(before) and each not in before) for each in sorted(types)
            )
            removed = tuple(short_type(each) for each in sorted(before - {*types}))
            rows.append(TypeVariable(name, self.version.type_descriptions.get(name, ""), described, removed))
        return rows

    def _types_before(self, name: str) -> frozenset[str]:
        """Return the types that the previous version allows for the parameters of a type variable.

        Parameters are compared, because versions may use the name of a variable for other parameters.
        """
        old, new = self.entry.before, self.version
        if old is None:
            return frozenset()
        pairs = (*_same_parameters(old.inputs, new.inputs), *_same_parameters(old.outputs, new.outputs))
        return frozenset(
            kind for before, after in pairs if after.type == name for kind in old.types_of(before)
        )

    @property
    def requirements(self) -> tuple[str, ...]:
        """Requirements for ranks, sizes and values of the inputs of nodes, as expressions."""
        return tuple(each.text for each in requirements_of(self.version))

    @property
    def shape_rule(self) -> str:
        """A sentence about the shape rule: a short form, the first line of its docstring, or its name."""
        rule = SHAPE_RULES.get(self.version.shape)  # the shape rule of a private domain may not be installed
        text = SHORT_RULES.get(self.version.shape) or (rule and rule.__doc__) or ""
        return text.partition("\n")[0] or f"The rule `{self.version.shape}`."

    @cached_property
    def changes(self) -> tuple[ClassifiedChange, ...]:
        """All changes from the previous version."""
        return classify(self.entry.before, self.version) if self.entry.before else ()

    @property
    def change_class(self) -> ChangeClass | None:
        """The most severe class of the changes; `None` for the first version."""
        return most_severe_class(self.changes) if self.entry.before else None

    @property
    def differences(self) -> list[EffectGroup]:
        """The changes from the previous version, most severe first."""
        return comparison_groups(self.changes)

    @property
    def conversions(self) -> Iterator[ConversionRow]:
        """Conversions from and to this version, each with a single step."""
        entry, version = self.entry, self.version
        if entry.before and entry.up and entry.down:
            yield ConversionRow(entry.before, version, version.since_version, entry.up)
            yield ConversionRow(version, entry.before, entry.before.since_version, entry.down)
        if entry.arriving:
            yield ConversionRow(version, None, version.since_version - 1, entry.arriving)
        later = next((each for each in self.operator.entries if each.before is version), None)
        if later and later.up and later.down:
            yield ConversionRow(version, later.version, later.version.since_version, later.up)
            yield ConversionRow(later.version, version, version.since_version, later.down)
        if entry.leaving and version.removal:
            yield ConversionRow(version, None, version.removal.removed_in, entry.leaving)

    @cached_property
    def function(self) -> FunctionText | None:
        """The function body; `None` if the operator is not a function."""
        return function_text(self.version, self.operator.registry) if self.version.has_function else None

    @property
    def drawing(self) -> str:
        """SVG of the function body, or of its body for an example node; empty if there is none to draw."""
        example = self.function.function if self.function else None
        boxes = function_boxes(example) if example else body_boxes(self.version)
        return svg(boxes, "Drawing of the function body")

    def as_dict(self) -> Mapping[str, Json]:
        """Return the definition, its history and its changes as JSON data."""
        return version_data(self.entry)


class OperatorView:
    """Operator, with the content of its page and a view of each version, oldest first."""

    def __init__(self, operator: Operator, registry: Registry) -> None:
        self.operator = operator
        self.registry = registry
        self.entries = list(history_of(operator))
        self.versions = [VersionView(each, self) for each in self.entries]

    @property
    def newest(self) -> VersionView:
        """The newest version."""
        return self.versions[-1]

    @property
    def summary(self) -> str:
        """The first sentence of the description of the newest version."""
        return " ".join(self.newest.version.description.split()).split(". ")[0].rstrip(".:")

    @property
    def status(self) -> str:
        """Status of the operator; empty if it is stable."""
        version = self.newest.version
        if version.removal:
            return f"removed in opset {version.removal.removed_in}"
        return "deprecated" if version.deprecation else version.status.lower().replace("stable", "")

    @property
    def types(self) -> Sequence[TypeRow]:
        """A row for each type, with whether any type variable of each version allows the type."""
        found = [
            frozenset(map(short_type, chain.from_iterable(each.version.type_constraints.values())))
            for each in self.versions
        ]
        return [
            TypeRow(kind, tuple(kind in types for types in found))
            for kind in sorted(frozenset().union(*found))
        ]

    @property
    def category(self) -> str:
        """Title of the category of the operator, such as `Neural networks`."""
        return category_of(self.operator)

    @property
    def example(self) -> OperatorExample | None:
        """The example of the operator, a model of a single node; `None` if there is none."""
        return example_of(self.operator)

    @property
    def example_conversions(self) -> list[ExampleConversion]:
        """Conversions of the example to older opsets; empty without an example."""
        example = self.example
        return list(example_conversions(example, self.operator, self.registry)) if example else []


def comparison_groups(changes: Iterable[ClassifiedChange]) -> list[EffectGroup]:
    """Group the changes between two versions by their effect, most severe first."""
    severity = list(ChangeClass).index
    found: dict[tuple[ChangeClass, str], dict[tuple[str, str, str], list[str]]] = {}
    for each in sorted(changes, key=lambda each: -severity(each.change_class)):
        change = each.change
        key = (change_subject(change.kind), *_old_and_new_texts(change.kind, change.old, change.new))
        lines = found.setdefault((each.change_class, each.purpose), {})
        lines.setdefault(key, []).append(change.subject)
    return [
        EffectGroup(*effect, tuple(ChangeLine(tuple(subjects), *key) for key, subjects in lines.items()))
        for effect, lines in found.items()
    ]


def _old_and_new_texts(kind: str, old: object, new: object) -> tuple[str, str]:
    """Return texts for the old and new value of a change; for types, only the removed and added ones."""
    if isinstance(old, frozenset) and isinstance(new, frozenset):
        removed, added = (", ".join(sorted(map(short_type, each))) for each in (old - new, new - old))
        return removed and f"no longer {removed}", added and f"also {added}"
    if kind.endswith("_added"):
        return "", _with_value("added", kind, new)
    if kind.endswith("_removed"):
        return _with_value("", kind, old), "removed"
    return ("", "") if old is None and new is None else (_value_html(old), _value_html(new))


def _with_value(event: str, kind: str, value: object) -> str:
    """Append to `event` the default of an attribute, or the number of values of a parameter."""
    text = "" if value is None else _value_html(value)
    stated = f"default {text}" if text and kind.startswith("attribute") else text
    return ", ".join(filter(None, (event, stated)))


def _value_html(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    match value:
        case "single":
            return "required"
        # Lists of attributes that determine the type of a parameter have no short text: only the description
        # of the change mentions them.
        case ((_, *_), _) | ((), _):
            return ""
        case (("single" | "optional" | "variadic") as option, int(least), bool(homogeneous)):
            parameter = Parameter(name="", type="", option=option, min_arity=least, homogeneous=homogeneous)
            return option_text(parameter) or "required"
    return "none" if value is None else value_text(value)


@dataclass(frozen=True)
class OpsetView:
    """Opset of a domain, its operator versions, and its changes from the previous opset."""

    domain: str
    opset: int
    release: str
    """The first ONNX release with the opset; empty for domains outside ONNX."""
    ir_version: int
    """The IR version of this release; 0 for domains outside ONNX."""
    versions: Sequence[OperatorVersion]
    """The operator versions in effect at this opset."""
    new: Sequence[VersionView]
    """First versions of the operators that this opset adds."""
    changed: Sequence[VersionView]
    """New versions of operators that older opsets already have."""
    removed: Sequence[VersionView]
    """Last versions of operators that this opset removes."""

    def as_dict(self) -> dict[str, object]:
        """Return plain data for JSON."""
        lists = {"new": self.new, "changed": self.changed, "removed": self.removed}
        return {
            "domain": self.domain,
            "opset": self.opset,
            "release": self.release,
            "ir_version": self.ir_version,
            **{name: [str(each.version.id) for each in views] for name, views in lists.items()},
            "operators": [str(each.id) for each in self.versions],
        }


def opset_views(domain: str, operators: Sequence[OperatorView], registry: Registry) -> list[OpsetView]:
    """Return all opsets of a domain, oldest first."""
    views = [view for each in operators for view in each.versions]
    return [
        OpsetView(
            domain,
            opset,
            release_with(domain, opset, registry),
            registry.releases.ir_version_for({domain: opset}),
            [version for each in operators if (version := each.operator.at(opset))],
            [each for each in views if each.version.since_version == opset and not each.entry.before],
            [each for each in views if each.version.since_version == opset and each.entry.before],
            [each for each in views if each.version.removal and each.version.removal.removed_in == opset],
        )
        for opset in range(1, registry.newest_opset(domain) + 1)
    ]


def release_with(domain: str, opset: int, registry: Registry) -> str:
    """Return the first ONNX release with an opset, such as `ONNX 1.16.0`; empty if there is none."""
    found = registry.releases.first_release_with(domain, opset)
    names = (f"ONNX {name}" for name, each in registry.releases.onnx.items() if each is found)
    return next(names, "")
