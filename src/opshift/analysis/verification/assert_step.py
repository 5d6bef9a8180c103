"""Assertion that a conversion of an operator preserves the outputs of its nodes.

The nodes are generated from the definition of the operator.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np

from opshift.analysis.verification.inputs import (
    INTEGER_RANGES,
    InputShapes,
    ModelInput,
    candidate_shapes,
    generate_values,
)
from opshift.analysis.verification.numpy_types import NUMPY_TYPES, Array, array_element_type
from opshift.analysis.verification.result import CannotVerify, Verification, VerificationFailed
from opshift.analysis.verification.verify import require_seed, verify
from opshift.converter.convert import convert_version
from opshift.converter.options import AllowLike
from opshift.converter.refusals import ConversionRefused
from opshift.inference.scope import Scope
from opshift.model.attributes import ATTRIBUTE_TYPES, write_attribute
from opshift.model.errors import UsageError
from opshift.model.messages import ModelProto
from opshift.model.node import Tensor
from opshift.model.operator_ids import DEFAULT_DOMAIN, canonical_domain, model_domain, opset_imports
from opshift.model.tensors import write_tensor
from opshift.model.types import Dim, fill_type, short_type
from opshift.registry.models import Attribute, OperatorVersion, Parameter
from opshift.registry.registry import Registry, registry_or_default

NUMBERS = {"INT": (0, 1, -1, 2, 3), "FLOAT": (0.5, 1.0, -1.5, 0.0, 2.25)}
"""Values to try for attributes whose definition does not list the allowed values, by attribute type."""

MORE_VALUES = 2
"""Number of values to pass to a variadic parameter, in addition to its minimum."""


class GeneratedNode(NamedTuple):
    """Node of an operator version, without shapes.

    Attributes:
        types: element type of each input, by its name in the node.
        inputs: names of the inputs; `""` for an omitted input.
        outputs: names of the outputs.
        attributes: the attributes of the node by name.
        constants: names of the inputs that are initializers; the other inputs are graph inputs.
    """

    types: Mapping[str, str]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, object]
    constants: frozenset[str]

    def __str__(self) -> str:
        """Return a text such as `(X: float, factor: float = constant) <axis = 1>`."""
        values = [
            f"{name}: {self.types[name]}{' = constant' if name in self.constants else ''}" if name else '""'
            for name in self.inputs
        ]
        settings = ", ".join(f"{name} = {value!r}" for name, value in self.attributes.items())
        return f"({', '.join(values)})" + (f" <{settings}>" if settings else "")


class Preset(NamedTuple):
    """Attributes, input values and input shapes that the caller fixes, by name in the definition."""

    attributes: Mapping[str, object]
    inputs: Mapping[str, Array]
    shapes: Mapping[str, Sequence[Dim]]


def generate_nodes(
    version: OperatorVersion, preset: Preset, count: int, seed: int
) -> Iterator[GeneratedNode]:
    """Yield nodes of an operator version: first vary one choice at a time, then combine choices at random.

    The choices are element types, attribute values, and optional inputs and outputs. Each combination is
    yielded with graph inputs only, and with initializers for all inputs but the first. Raises UsageError if
    the definition is not sufficient to generate a node.
    """
    choices = _choices_for(version, preset)
    sizes = [len(each) for each in (*choices[:3], *choices.attributes.values())]
    random = np.random.default_rng(seed)
    picks = [[0] * len(sizes)]
    for position, size in enumerate(sizes):
        picks += [
            [index if each == position else 0 for each in range(len(sizes))] for index in range(1, size)
        ]
    picks += [random.integers(sizes).tolist() for _ in range(count)]
    seen: set[str] = set()
    for pick, is_constant in product(picks, (False, True)):
        node = _generated_node(version, choices, pick, is_constant)
        if str(node) not in seen and (node.constants or not is_constant):
            seen.add(str(node))
            yield node


Arrangement = tuple[tuple[str, Parameter], ...]
"""Name and formal parameter of each input or output of a node; the name of an omitted one is `""`."""


class _Choices(NamedTuple):
    """Alternatives for element types, inputs, outputs and attribute values; `None` omits an attribute."""

    types: Sequence[Mapping[str, str]]
    inputs: Sequence[Arrangement]
    outputs: Sequence[Arrangement]
    attributes: Mapping[str, Sequence[object]]


def _choices_for(version: OperatorVersion, preset: Preset) -> _Choices:
    attributes: dict[str, Sequence[object]] = {}
    for name, attribute in version.attributes.items():
        if name in preset.attributes:
            attributes[name] = [preset.attributes[name]]
            continue
        values = [each for each in _attribute_values(attribute) if attribute.allows(each)]
        if attribute.required and not values:
            remedy = f"pass attributes={{{name!r}: ...}}"
            raise UsageError(f"no value can be generated for the required attribute {name!r}", remedy=remedy)
        attributes[name] = values if attribute.required else [None, *values]
    inputs = list(reversed(_arrangements(version.inputs)))
    outputs = [each for each in _arrangements(version.outputs) if any(name for name, _ in each)]
    return _Choices(_type_choices(version, preset), inputs, outputs, attributes)


def _arrangements(parameters: Sequence[Parameter]) -> list[Arrangement]:
    """Return arrangements with and without optional parameters; the last one has all of them."""
    complete: list[tuple[str, Parameter]] = []
    found: list[Arrangement] = []
    for parameter in parameters:
        if parameter.option == "variadic":
            names = [f"{parameter.name}_{index}" for index in range(parameter.min_arity + MORE_VALUES)]
            found.append((*complete, *((name, parameter) for name in names[: parameter.min_arity])))
            complete += [(name, parameter) for name in names]
        else:
            if parameter.option == "optional":
                found.append(tuple(complete))
            else:
                found.clear()  # shorter arrangements would omit this required parameter
            complete.append((parameter.name, parameter))
    for position, (_, parameter) in enumerate(complete[:-1]):
        if parameter.option == "optional":
            found.append((*complete[:position], ("", parameter), *complete[position + 1 :]))
    return [*dict.fromkeys(found), tuple(complete)]


def _attribute_values(attribute: Attribute) -> Sequence[int | float | str]:
    if not ATTRIBUTE_TYPES[attribute.type].is_plain or ATTRIBUTE_TYPES[attribute.type].is_repeated:
        return ()
    if attribute.values is not None:
        return attribute.values
    limits = [each for each in (attribute.minimum, attribute.maximum) if each is not None]
    return [*NUMBERS.get(attribute.type, ()), *limits]


def _type_choices(version: OperatorVersion, preset: Preset) -> list[Mapping[str, str]]:
    """Return mappings of type variables to element types; each allowed NumPy type occurs in at least one."""
    allowed: dict[str, list[str]] = {}
    for parameter in version.inputs:
        types = list(map(short_type, version.types_of(parameter)))
        given = preset.inputs.get(parameter.name)
        known = [each for each in types if each in NUMPY_TYPES]
        if given is not None:
            known = [each for each in known if each == array_element_type(np.asarray(given))]
        if not known and parameter.option == "single":
            reason = f"no value can be generated for input {parameter.name!r}"
            raise UsageError(reason, remedy="compare models with it by opshift.verify")
        if parameter.type not in allowed or given is not None:
            allowed[parameter.type] = sorted(known, key=lambda each: each != "float")
    count = max(map(len, allowed.values()), default=1)
    return [
        {name: types[index % len(types)] for name, types in allowed.items() if types}
        for index in range(count)
    ]


def _generated_node(
    version: OperatorVersion, choices: _Choices, pick: Sequence[int], is_constant: bool
) -> GeneratedNode:
    types = choices.types[pick[0]]
    values = [(name, types.get(parameter.type)) for name, parameter in choices.inputs[pick[1]]]
    inputs = [name if element_type else "" for name, element_type in values]
    while len(inputs) > version.min_input and not inputs[-1]:
        inputs.pop()
    inputs += [""] * (version.min_input - len(inputs))
    outputs = (name for name, _ in choices.outputs[pick[2]])
    picked = zip(choices.attributes.items(), pick[3:], strict=True)
    attributes = {name: listed[index] for (name, listed), index in picked}
    return GeneratedNode(
        {name: element_type for name, element_type in values if name and element_type},
        tuple(inputs),
        tuple(f"{name}_out" if name in inputs else name for name in outputs),
        {name: value for name, value in attributes.items() if value is not None},
        frozenset(inputs[1:]) - {""} if is_constant else frozenset(),
    )


def candidate_models(
    version: OperatorVersion, node: GeneratedNode, preset: Preset, opsets: Mapping[str, int], seed: int
) -> Iterator[ModelProto]:
    """Yield models with one node, for different input shapes and values of constants."""
    values = [
        ModelInput(name, f"tensor({node.types[name]})", node.types[name], _preset_dims(version, name, preset))
        for name in node.inputs
        if name
    ]
    needs_integers = any("int" in node.types[name] for name in node.constants)
    ranges = INTEGER_RANGES if needs_integers else INTEGER_RANGES[:1]
    for integer_range, shapes in product(ranges, candidate_shapes(values, {})):
        yield _model_of_node(version, node, preset, opsets, shapes, integer_range, seed)


def _preset_dims(version: OperatorVersion, name: str, preset: Preset) -> tuple[Dim, ...] | None:
    formal = _formal_name(version, name)
    if formal in preset.inputs:
        return np.asarray(preset.inputs[formal]).shape
    dims = preset.shapes.get(formal)
    return None if dims is None else tuple(dims)


def _formal_name(version: OperatorVersion, name: str) -> str:
    return name if version.input_named(name) else name.rpartition("_")[0]


def _model_of_node(
    version: OperatorVersion,
    node: GeneratedNode,
    preset: Preset,
    opsets: Mapping[str, int],
    shapes: InputShapes,
    integer_range: tuple[int, int],
    seed: int,
) -> ModelProto:
    # One IR version for all opsets: initializers are constants since version 4, and runtimes accept newer IR
    # versions with older opsets.
    model = ModelProto(ir_version=8)
    for domain, opset in opsets.items():
        model.opset_import.add(domain=model_domain(domain), version=opset)
    graph = model.graph
    graph.name = version.name
    proto = graph.node.add(op_type=version.name, domain=model_domain(version.domain))
    proto.input.extend(node.inputs)
    proto.output.extend(node.outputs)
    for name, value in node.attributes.items():
        kind = ATTRIBUTE_TYPES[version.attributes[name].type]
        if not kind.is_plain:
            reason = f"attribute {name!r} of type {version.attributes[name].type} cannot be passed"
            raise UsageError(reason, remedy="compare models with it by opshift.verify")
        write_attribute(proto.attribute.add(), name, kind, value)
    random = np.random.default_rng(seed)
    for name, shape in shapes.items():
        if name not in node.constants:
            value_info = graph.input.add(name=name)
            fill_type(value_info.type, node.types[name], shape)
            continue
        array = preset.inputs.get(_formal_name(version, name))
        if array is None:
            array = generate_values(node.types[name], shape, 0, integer_range, random)
        write_tensor(graph.initializer.add(), _tensor_of(node.types[name], np.asarray(array)), name)
    for name in node.outputs:
        graph.output.add(name=name)
    return model


def _tensor_of(element_type: str, array: Array) -> Tensor:
    values = array.ravel().tolist()
    if element_type == "string":
        values = [str(each).encode() for each in values]
    return Tensor(element_type, array.shape, tuple(values))


MAX_ATTEMPTS = 4
"""Maximum number of models to try for a node after a similar node ran: some nodes fail with all shapes."""


@dataclass(frozen=True)
class StepCoverage:
    """Generated nodes of a conversion step, by outcome.

    Attributes:
        compared: the nodes with equal outputs before and after the conversion.
        refused: the reasons why nodes were refused, by node.
        rejected: the reasons why nodes could not be compared, by node; for example, no runtime runs the node.
    """

    compared: tuple[str, ...]
    refused: Mapping[str, str]
    rejected: Mapping[str, str]


def assert_step_preserves_outputs(
    op_type: str,
    source: int,
    target: int,
    *,
    domain: str = "",
    attributes: Mapping[str, object] | None = None,
    inputs: Mapping[str, Array] | None = None,
    shapes: Mapping[str, Sequence[Dim]] | None = None,
    allow: AllowLike = (),
    registry: Registry | None = None,
    onnx_opset: int = 17,
    count: int = 20,
    samples: int = 3,
    seed: int = 0,
    tolerance: float | None = None,
    custom_ops: Iterable[str | os.PathLike[str]] = (),
) -> StepCoverage:
    """Assert that nodes of an operator have the same outputs before and after a conversion.

    Also assert that the inferred shapes of the outputs match their actual shapes.

    The nodes are generated from the definition: with each element type and attribute value, with and without
    optional inputs, with graph inputs and initializers, and in random combinations. onnxruntime or
    onnx.reference runs the nodes; `opshift.reference` registers functions for operators of private domains.

    Args:
        op_type: the operator.
        source: the opset of the domain that the nodes are written for.
        target: the opset of the domain to convert to.
        domain: the domain of the operator; by default `ai.onnx`.
        attributes: fixed values of attributes, by name.
        inputs: fixed values of inputs, by name in the definition.
        shapes: dimensions of inputs by name: sizes, or dimension names; equal names get equal sizes. If an
            input has no shape here, several shapes are tried until the operator accepts one.
        allow: inexact conversions to allow, see `convert_version`.
        registry: operator definitions; by default those of opshift and of installed packages.
        onnx_opset: the opset of `ai.onnx`, which models with operators of a private domain also import.
        count: the number of random combinations.
        samples: the number of input sets of each node.
        seed: seed of the generated nodes and inputs.
        tolerance: relative and absolute tolerance, see `verify`.
        custom_ops: libraries of custom operators for onnxruntime.

    Returns:
        The compared nodes, and the refused and rejected nodes with the reasons.

    Raises:
        AssertionError: outputs differ, a converted node does not run, an inferred shape is wrong, or no node
            could be compared.
        ExtensionFailed: an adapter, shape rule or reference fails.
        UsageError: an argument is invalid, or the definition is not sufficient to generate nodes.
        ResolveError: the domain or an opset is unknown, or the operator does not exist at `source`.
    """
    registry = registry_or_default(registry)
    domain = canonical_domain(domain)
    version = registry.get_schema(op_type, source, domain)
    preset = Preset(attributes or {}, inputs or {}, shapes or {})
    _require_known_names(version, preset)
    require_seed(seed)
    opsets = {DEFAULT_DOMAIN: onnx_opset, domain: source}
    step = f"{domain}.{op_type} {source} -> {target}"
    compared: list[str] = []
    accepted: dict[bool, int] = {}
    refused: dict[str, str] = {}
    rejected: dict[str, str] = {}
    for node in generate_nodes(version, preset, count, seed):
        text = f"{op_type}{node}"
        models = list(candidate_models(version, node, preset, opsets, seed))
        # Start with the shapes with which the last node of this form (with or without constants) ran.
        form = bool(node.constants)
        order = sorted(range(len(models)), key=lambda each: each != accepted.get(form))
        for index in order[: MAX_ATTEMPTS if form in accepted else len(order)]:
            model = models[index]
            given = {
                each.name: preset.inputs[each.name]
                for each in model.graph.input
                if each.name in preset.inputs
            }
            try:
                converted = convert_version(model, {domain: target}, allow=allow, registry=registry)
                verification = verify(
                    model,
                    converted,
                    given,
                    samples=samples,
                    seed=seed,
                    tolerance=tolerance,
                    registry=registry,
                    custom_ops=custom_ops,
                )
            except ConversionRefused as error:
                refused[text] = error.refusals[0].reason
            except CannotVerify as error:
                rejected[text] = error.reason
            except VerificationFailed as error:
                reason = f"{step} does not preserve the outputs of {text}, seed {seed}: {error.reason}"
                raise AssertionError(reason) from error
            else:
                for each in (model, converted):
                    _require_inferred_shapes(each, verification, registry, text)
                accepted[form] = index
                compared.append(text)
                refused.pop(text, None)
                rejected.pop(text, None)
                break
    if not compared:
        reasons = "; ".join(dict.fromkeys((*refused.values(), *rejected.values())))
        raise AssertionError(f"{step}: no generated node could be compared: {reasons}")
    return StepCoverage(tuple(compared), refused, rejected)


def _require_inferred_shapes(
    model: ModelProto, verification: Verification, registry: Registry, node: str
) -> None:
    """Raise AssertionError if an inferred output shape contradicts the actual shape; unknown sizes match."""
    scope = Scope(model.graph, opset_imports(model.opset_import), registry, {})
    for output in verification.outputs:
        inferred, actual = scope.shape(output.name), output.shape
        if inferred is None or actual is None:
            continue
        sizes = [size if known is not None else None for known, size in zip(inferred, actual, strict=False)]
        if list(inferred) != sizes or len(inferred) != len(actual):
            reason = f"the inferred shape of {output.name!r} is {list(inferred)}, not {list(actual)}"
            raise AssertionError(f"{node} at {_opset_text(model)}: {reason}")


def _opset_text(model: ModelProto) -> str:
    imports = opset_imports(model.opset_import).items()
    return ", ".join(f"{domain} {opset}" for domain, opset in imports)


def _require_known_names(version: OperatorVersion, preset: Preset) -> None:
    names = {"attributes": version.attributes, "inputs": [each.name for each in version.inputs]}
    names["shapes"] = names["inputs"]
    for group, given in preset._asdict().items():
        for name in given:
            if name not in names[group]:
                remedy = f"it has {', '.join(names[group]) or 'none'}"
                raise UsageError(f"{version.id} has no {name!r} for {group}", remedy=remedy)
