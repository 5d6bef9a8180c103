"""Models with one node, for each version, type and form of an operator."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from itertools import islice, product, zip_longest
from typing import Any, NamedTuple

import numpy as np
import onnx.parser
from onnx import numpy_helper
from onnx.backend.test.loader import load_model_tests

import opshift
from measurement.change_types import with_types
from measurement.describe import Described, definition_of, describe
from opshift.analysis.verification.assert_step import Preset, candidate_models, generate_nodes
from opshift.analysis.verification.result import CannotVerify
from opshift.model.errors import OpshiftError
from opshift.model.messages import ModelProto, TensorProto
from opshift.registry.models import OperatorVersion
from opshift.registry.registry import default_registry

DOMAINS = ("ai.onnx", "ai.onnx.ml", "ai.onnx.preview", "ai.onnx.preview.training")

TEMPLATES = 8
"""Maximum number of different nodes of an operator that are converted to its other versions."""

GENERATED = 24
"""Maximum number of generated nodes of an operator version without a test case."""

SHAPES = 6
"""Maximum number of models for a generated node, with different shapes."""

ONNX_OPSET = 17
"""Opset of the default domain in models with nodes of other domains."""

LOCAL_FUNCTION = """
<ir_version: 8, opset_import: ["": 17, "local": 1]>
main (float[2, 3] x) => (float[2, 3] y) { y = local.Twice (x) }
<domain: "local", opset_import: ["": 17]>
Twice (a) => (b) { b = Add (a, a) }
"""

MAX_COMBINATIONS = 1000
"""Maximum number of combinations of types to load if types are not accepted independently of each other."""

COMBINATIONS = 24
"""Maximum number of combinations of types, in addition to those that differ from a template in one type."""


class Probe(NamedTuple):
    """Model to load, its description, and values of its inputs and outputs; without values it is not run."""

    described: Described
    model: bytes
    values: Mapping[str, Any]
    name: str
    form: int = 0
    """Position among the forms of a node; the usual form is first."""
    varies_types: bool = False
    """Whether the probe differs from another probe only in its types."""

    @property
    def key(self) -> str:
        """Digest of the model and its values."""
        return hashlib.sha1(self.model + bytes(bool(self.values)), usedforsecurity=False).hexdigest()


def probe_of(model: ModelProto, values: Mapping[str, Any], name: str) -> Probe | None:
    """Return the probe of a model; `None` if it does not have exactly one node."""
    described = describe(model)
    return described and Probe(described, model.SerializeToString(), values, name)


def published_probes() -> Iterator[Probe]:
    """Yield the test cases of ONNX with one node, each in several forms."""
    for case in load_model_tests(kind="node"):
        if case.model is None or len(case.model.graph.node) != 1:
            continue
        model = ModelProto.FromString(case.model.SerializeToString())
        inputs, outputs = case.data_sets[0] if case.data_sets else ([], [])
        arrays = (np.asarray(each) if isinstance(each, np.generic) else each for each in inputs)
        fed = dict(zip((each.name for each in model.graph.input), arrays, strict=False))
        values = {f"out.{position:02}": each for position, each in enumerate(outputs)}
        if not all(map(_is_plain, outputs)):
            values = {}
        yield from forms(model, fed, values, case.name)


def forms(
    model: ModelProto, fed: Mapping[str, Any], expected: Mapping[str, Any], name: str
) -> Iterator[Probe]:
    """Yield copies of a model with different sets of constant inputs.

    In the first copy, only the first input is not constant, as in most exported nodes.
    """
    names = [each for each, value in fed.items() if isinstance(value, np.ndarray)]
    selections = [tuple(names[1:]), (), tuple(names)]
    for each in names:
        selections += [tuple(other for other in names if other != each), (each,)]
    for position, selection in enumerate(dict.fromkeys(selections)):
        changed = with_constants(model, {each: fed[each] for each in selection})
        rest = {f"in.{each}": value for each, value in fed.items() if each not in selection}
        values = {**rest, **expected} if expected and all(map(_is_plain, rest.values())) else {}
        probe = probe_of(changed, values, f"{name}, constant: {', '.join(selection) or 'none'}")
        if probe:
            yield probe._replace(form=position)


def _is_plain(value: object) -> bool:
    """Return whether a value is an array of a type that numpy and all runtimes support."""
    return isinstance(value, np.ndarray | np.generic) and value.dtype.kind in "biufc"


def with_constants(model: ModelProto, values: Mapping[str, Any]) -> ModelProto:
    """Return a copy of a model in which the given inputs are initializers."""
    changed = ModelProto.FromString(model.SerializeToString())
    for name, value in values.items():
        tensor = numpy_helper.from_array(value, name).SerializeToString()
        changed.graph.initializer.append(TensorProto.FromString(tensor))
    inputs = [each for each in changed.graph.input if each.name not in values]
    del changed.graph.input[:]
    changed.graph.input.extend(inputs)
    return changed


def signature(probe: Probe) -> object:
    """Return the properties that make the description of a node unique."""
    operator, types, features = probe.described
    return operator, frozenset(types.items()), frozenset((key, str(value)) for key, value in features.items())


def distinct(probes: Iterable[Probe]) -> list[Probe]:
    """Return the first of all probes with the same description."""
    return list({signature(each): each for each in reversed(list(probes))}.values())[::-1]


def version_probes(probes: Iterable[Probe]) -> Iterator[Probe]:
    """Yield the nodes of test cases at the other versions of their operators."""
    by_operator: dict[tuple[str, str], list[Probe]] = defaultdict(list)
    for probe in distinct(probes):
        operator = probe.described.operator
        by_operator[operator.domain, operator.op_type].append(probe)
    for (domain, op_type), found in by_operator.items():
        definition = default_registry().operator(op_type, domain)
        assert definition is not None
        versions = definition.versions
        old_types = {each for types in versions[0].type_constraints.values() for each in types} | {
            "tensor(float)"
        }
        ordered = _spread(found, old_types)
        for version in versions:
            for opset in sorted({version.since_version, last_opset(version)}):
                converted = (_at_opset(each, domain, opset) for each in ordered)
                yield from islice(filter(None, converted), TEMPLATES)


def _spread(probes: Sequence[Probe], old_types: Set[str]) -> list[Probe]:
    """Sort probes: usual and other forms in turn, different attributes between them, and new types last."""
    mixed = sorted(
        probes,
        key=lambda each: (
            not old_types >= set(each.described.types.values()),
            hashlib.sha1(each.name.encode(), usedforsecurity=False).digest(),
        ),
    )
    usual = [each for each in mixed if not each.form]
    others = [each for each in mixed if each.form]
    return [each for pair in zip_longest(usual, others) for each in pair if each]


def last_opset(version: OperatorVersion) -> int:
    """Return the newest opset at which a version of an operator is in effect."""
    operator = default_registry().operator(version.name, version.domain)
    if version.removal or operator is None:
        return version.removal.removed_in - 1 if version.removal else version.since_version
    later = [each.since_version for each in operator.versions if each.since_version > version.since_version]
    return min(later) - 1 if later else default_registry().newest_opset(version.domain)


def _at_opset(probe: Probe, domain: str, opset: int) -> Probe | None:
    """Return a probe at another opset; `None` if the node is not valid there."""
    model = ModelProto.FromString(probe.model)
    try:
        converted = opshift.convert_version(model, {domain: opset})
    except OpshiftError:
        return None
    found = probe_of(converted, probe.values, f"{probe.name}, opset {opset}")
    is_same = found and found.described.operator.op_type == probe.described.operator.op_type
    return found._replace(form=probe.form) if found and is_same else None


def generated_probes(version: OperatorVersion) -> Iterator[list[Probe]]:
    """Yield generated nodes of an operator version, each with different shapes."""
    preset = Preset({}, {}, {})
    opsets = {"ai.onnx": ONNX_OPSET, version.domain: version.since_version}
    try:
        for node in islice(generate_nodes(version, preset, 0, 0), GENERATED):
            models = islice(candidate_models(version, node, preset, opsets, 0), SHAPES)
            probes = (probe_of(each, {}, f"{version.id} {node}") for each in models)
            yield list(filter(None, probes))
    except (OpshiftError, CannotVerify):
        return  # The definition does not suffice to generate a node, for example if it has sequences.


def local_function_model() -> bytes:
    """Return a model with a call of a function, which runtimes with function bodies inline."""
    return bytes(onnx.parser.parse_model(LOCAL_FUNCTION).SerializeToString())


def type_probes(template: Probe, *, every: bool = False) -> Iterator[Probe]:
    """Yield a template with each type for one type variable or for all, and with combinations of types."""
    operator, types, _ = template.described
    version = definition_of(operator)
    allowed = {
        name: [each for each in version.type_constraints[name] if each.startswith("tensor(")]
        for name, kind in types.items()
        if kind.startswith("tensor(")
    }
    varied = [{**types, name: each} for name, listed in allowed.items() for each in listed]
    # In most models, all variables have the same type.
    varied += [
        {**types, **{name: kind for name, listed in allowed.items() if kind in listed}}
        for kind in dict.fromkeys(each for listed in allowed.values() for each in listed)
    ]
    rows: Iterable[tuple[str, ...]] = islice(product(*allowed.values()), MAX_COMBINATIONS)
    if not every:
        random = np.random.default_rng(0)
        rows = zip(*(random.choice(each, COMBINATIONS).tolist() for each in allowed.values()), strict=True)
    combined = [{**types, **dict(zip(allowed, row, strict=True))} for row in rows]
    model = ModelProto.FromString(template.model)
    for given in {str(each): each for each in (*varied, *combined)}.values():
        changed = with_types(
            model, version, {name: each for name, each in given.items() if types[name] != each}
        )
        probe = changed and probe_of(changed, {}, f"{template.name}, types {given}")
        if probe:
            yield probe._replace(varies_types=True)
