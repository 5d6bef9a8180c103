"""Draw one node of an operator from its definition and the tables, and add it to a graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper

from opshift.registry.models import OperatorVersion, Parameter
from random_graphs.draft import Choice, Draft, TensorSpec
from random_graphs.graph import Graph
from random_graphs.tables import CHOICES, RANKS
from random_graphs.values import Value, is_float

DISCONTINUOUS = {
    "Floor", "Ceil", "Round", "Sign", "Mod", "ArgMax", "ArgMin", "TopK", "NonZero", "Equal", "Greater",
    "GreaterOrEqual", "Less", "LessOrEqual", "Cast", "CastLike", "BitCast", "Hardmax", "QuantizeLinear",
    "DynamicQuantizeLinear", "Unique", "IsNaN", "IsInf", "NonMaxSuppression", "Shrink", "ThresholdedRelu",
    "MaxPool", "RoiAlign", "GridSample", "LabelEncoder", "Binarizer", "TreeEnsembleRegressor",
    "LinearClassifier", "OneHotEncoder", "Imputer", "Range", "OneHot", "Relu", "Bernoulli", "AffineGrid",
    "Tan", "Reciprocal", "Div", "Log", "Acosh", "Atanh", "ReduceLogSum", "Pow",
}  # fmt: skip
"""Operators that can turn a rounding error of the input into a large error of the output."""
UNDEFINED_FOR_INFINITIES = {
    "Cast", "CastLike", "QuantizeLinear", "ArgMax", "ArgMin", "Softmax", "LogSoftmax", "Hardmax", "TopK",
    "Mod", "Unique", "Sign", "MaxPool", "LRN",
}  # fmt: skip
"""Operators with runtime-dependent results for infinities and NaN."""
OPTIONAL_OUTPUTS = {"recurrent", "unique"}
"""Shape rules of operators with outputs that may all be omitted."""


def add_node(graph: Graph, version: OperatorVersion) -> bool:
    """Add a node of the operator and return whether this succeeded."""
    draft = Draft(
        graph,
        version,
        needs_exact=version.name in DISCONTINUOUS,
        needs_finite=not _supports_infinities(version),
    )
    try:
        inputs = [value for parameter in version.inputs for value in _sample_inputs(draft, parameter)]
        while inputs and inputs[-1] is None and len(inputs) > version.min_input:
            inputs.pop()
        attributes = {name: _sample_attribute(draft, name) for name in version.attributes}
    except _NoFittingValue:
        return False
    return _add_sampled_node(
        draft, inputs, {name: value for name, value in attributes.items() if value is not None}
    )


def _supports_infinities(version: OperatorVersion) -> bool:
    """Return whether every runtime computes the same result for infinities and NaN."""
    if version.name in UNDEFINED_FOR_INFINITIES:
        return False
    return version.bridge in ("order", "extreme") or version.shape in ("same_as_first", "broadcast")


class _NoFittingValue(Exception):
    """No value fits the parameter."""


def _choice_for(version: OperatorVersion, name: str, position: int) -> Choice | None:
    keys = [f"{version.name}.{name}", f"{version.shape}.{name}"]
    keys += [f"{version.shape}.*"] if position else []
    return next((CHOICES[key] for key in (*keys, name) if key in CHOICES), None)


def _sample_inputs(draft: Draft, parameter: Parameter) -> Sequence[Value | None]:
    position = draft.version.inputs.index(parameter)
    chooser = _choice_for(draft.version, parameter.name, position)
    choice = chooser(draft) if chooser else _default_choice(draft, parameter, position)
    if isinstance(choice, list) and any(isinstance(each, TensorSpec | Value) for each in choice):
        found = [each if isinstance(each, Value) else draft.data(parameter, each) for each in choice]
        draft.inputs[parameter.name] = found[0]
        return found
    value = _sample_value(draft, parameter, choice)
    draft.inputs[parameter.name] = value
    return [value]


def _sample_value(draft: Draft, parameter: Parameter, choice: Any) -> Value | None:
    if choice is None or isinstance(choice, Value):
        return choice
    if isinstance(choice, TensorSpec):
        return draft.data(parameter, choice)
    return draft.graph.parameter(choice, draft.element_type(parameter))


def _default_choice(draft: Draft, parameter: Parameter, position: int) -> Any:
    if parameter.option == "optional" and draft.chance(60):
        return None
    if all(each.startswith("seq(") for each in draft.types_of(parameter)):
        return _sample_sequence(draft, parameter)
    if position > 0 and parameter.option != "variadic":
        return TensorSpec(draft.shape)
    low, high = _rank_range(draft.version)
    found = None
    if draft.chance(65):
        found = draft.graph.pick(
            lambda value: (
                draft.fits(value, parameter, None) and (not value.is_tensor or low <= value.rank <= high)
            )
        )
    if found is not None:
        draft.types[parameter.type] = found.type
        return [found] if parameter.option == "variadic" else found
    shape = tuple(draft.size(3) for _ in range(draft.number(low, high)))
    return [TensorSpec(shape)] if parameter.option == "variadic" else TensorSpec(shape)


def _sample_sequence(draft: Draft, parameter: Parameter) -> Value:
    found = draft.graph.pick(lambda value: draft.fits(value, parameter, None)) if draft.chance(60) else None
    if found is None:
        element_type = draft.one_of("float", "float", "int64")
        parts = [draft.graph.data(element_type, (2, draft.number(1, 2))) for _ in range(draft.number(1, 3))]
        added = draft.graph.add("SequenceConstruct", parts, 1)
        if added is None or not draft.fits(added[0], parameter, None):
            raise _NoFittingValue
        found = added[0]
    draft.types[parameter.type] = found.type
    return found


def _rank_range(version: OperatorVersion) -> tuple[int, int]:
    found = RANKS.get(version.name) or RANKS.get(version.shape)
    has_axis = any(
        name in ("axis", "axes") for name in (*version.attributes, *(p.name for p in version.inputs))
    )
    return found or (1 if has_axis else 0, 4)


def _sample_attribute(draft: Draft, name: str) -> Any:
    chooser = _choice_for(draft.version, name, 0)
    found = chooser(draft) if chooser else draft.attribute(name)
    if found is None:
        return None
    value = found.tolist() if isinstance(found, np.ndarray) else found
    attribute_type = onnx.AttributeProto.AttributeType.Value(draft.version.attributes[name].type)
    return helper.make_attribute(name, value, attr_type=attribute_type)


def _add_sampled_node(draft: Draft, inputs: Sequence[Value | None], attributes: dict[str, Any]) -> bool:
    version = draft.version
    domain = "" if version.domain == "ai.onnx" else version.domain
    if version.determinism == "non_deterministic" and version.name.startswith(("Random", "Bern", "Multi")):
        return _add_random(draft, inputs, attributes)
    is_rounded = version.bridge not in ("order", "extreme")
    added = draft.graph.add(version.name, inputs, _sample_outputs(draft), attributes, domain)
    if added is None:
        return False
    for position, value in enumerate(added):
        if is_rounded and value.type and is_float(value.type.removeprefix("seq(tensor(")):
            draft.graph.values[position - len(added)] = value._replace(exact=False)
    return True


def _sample_outputs(draft: Draft) -> list[bool]:
    """Return which outputs are present."""
    outputs = draft.version.outputs
    if "outputs" in draft.facts or outputs[-1].option == "variadic":
        return [True] * draft.facts.get("outputs", 1)
    if draft.version.shape in OPTIONAL_OUTPUTS:
        found = [draft.chance(60) for _ in outputs]
        return found[
            : max([index + 1 for index, is_present in enumerate(found) if is_present], default=0)
        ] or [True]
    low = sum(each.option != "optional" for each in outputs)
    return [True] * max(1, draft.number(low, len(outputs)))


def _add_random(draft: Draft, inputs: Sequence[Value | None], attributes: dict[str, Any]) -> bool:
    """Add a random node and its shape; only the shape is the same in every run."""
    graph, name = draft.graph, draft.version.name
    drawn, shape = graph.name("v"), graph.name("v")
    node = helper.make_node(name, [each.name if each else "" for each in inputs], [drawn])
    node.attribute.extend(attributes.values())
    nodes = [node, helper.make_node("Shape", [drawn], [shape])]
    return graph.add_nodes(nodes, [shape]) is not None
