"""Draw one node of an operator, as its definition and the tables say, and add it to a graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper

from opshift.registry.models import OperatorVersion, Parameter
from support.graphs.draft import Choice, Draft, Of
from support.graphs.graph import Graph
from support.graphs.tables import CHOICES, RANKS
from support.graphs.values import Value, is_float

STEPPED = {
    "Floor", "Ceil", "Round", "Sign", "Mod", "ArgMax", "ArgMin", "TopK", "NonZero", "Equal", "Greater",
    "GreaterOrEqual", "Less", "LessOrEqual", "Cast", "CastLike", "BitCast", "Hardmax", "QuantizeLinear",
    "DynamicQuantizeLinear", "Unique", "IsNaN", "IsInf", "NonMaxSuppression", "Shrink", "ThresholdedRelu",
    "MaxPool", "RoiAlign", "GridSample", "LabelEncoder", "Binarizer", "TreeEnsembleRegressor",
    "LinearClassifier", "OneHotEncoder", "Imputer", "Range", "OneHot", "Relu", "Bernoulli", "AffineGrid",
    "Tan", "Reciprocal", "Div", "Log", "Acosh", "Atanh", "ReduceLogSum", "Pow",
}  # fmt: skip
"""Where a rounding error in the input can show as a large one in the output."""
UNDEFINED = {
    "Cast", "CastLike", "QuantizeLinear", "ArgMax", "ArgMin", "Softmax", "LogSoftmax", "Hardmax", "TopK",
    "Mod", "Unique", "Sign", "MaxPool",
}  # fmt: skip
"""Where it depends on the runtime what becomes of an infinity or NaN."""
GAPS = {"recurrent", "unique"}
"""Shape rules of operators any of whose outputs may be left out."""


def add_node(graph: Graph, version: OperatorVersion) -> bool:
    """Whether a node of the operator could be added."""
    draft = Draft(
        graph, version, needs_exact=version.name in STEPPED, needs_finite=not _takes_infinities(version)
    )
    try:
        inputs = [value for parameter in version.inputs for value in _inputs(draft, parameter)]
        while inputs and inputs[-1] is None and len(inputs) > version.min_input:
            inputs.pop()
        attributes = {name: _attribute(draft, name) for name in version.attributes}
    except _CannotDraw:
        return False
    return _add(draft, inputs, {name: value for name, value in attributes.items() if value is not None})


def _takes_infinities(version: OperatorVersion) -> bool:
    """Whether infinities and NaN have one meaning, however the result is computed."""
    if version.name in UNDEFINED:
        return False
    return version.bridge in ("order", "extreme") or version.shape in ("same_as_first", "broadcast")


class _CannotDraw(Exception):
    """There is no value that fits."""


def _choice(version: OperatorVersion, name: str, position: int) -> Choice | None:
    keys = [f"{version.name}.{name}", f"{version.shape}.{name}"]
    keys += [f"{version.shape}.*"] if position else []
    return next((CHOICES[key] for key in (*keys, name) if key in CHOICES), None)


def _inputs(draft: Draft, parameter: Parameter) -> Sequence[Value | None]:
    position = draft.version.inputs.index(parameter)
    choose = _choice(draft.version, parameter.name, position)
    choice = choose(draft) if choose else _default(draft, parameter, position)
    if isinstance(choice, list) and any(isinstance(each, Of | Value) for each in choice):
        found = [each if isinstance(each, Value) else draft.data(parameter, each) for each in choice]
        draft.given[parameter.name] = found[0]
        return found
    value = _value(draft, parameter, choice)
    draft.given[parameter.name] = value
    return [value]


def _value(draft: Draft, parameter: Parameter, choice: Any) -> Value | None:
    if choice is None or isinstance(choice, Value):
        return choice
    if isinstance(choice, Of):
        return draft.data(parameter, choice)
    return draft.graph.parameter(choice, draft.element(parameter))


def _default(draft: Draft, parameter: Parameter, position: int) -> Any:
    if parameter.option == "optional" and draft.chance(60):
        return None
    if all(each.startswith("seq(") for each in draft.types_of(parameter)):
        return _sequence(draft, parameter)
    if position > 0 and parameter.option != "variadic":
        return Of(draft.shape)
    least, most = _ranks(draft.version)
    found = None
    if draft.chance(65):
        found = draft.graph.pick(
            lambda value: (
                draft.fits(value, parameter, None) and (not value.is_tensor or least <= value.rank <= most)
            )
        )
    if found is not None:
        draft.types[parameter.type] = found.type
        return [found] if parameter.option == "variadic" else found
    shape = tuple(draft.size(3) for _ in range(draft.number(least, most)))
    return [Of(shape)] if parameter.option == "variadic" else Of(shape)


def _sequence(draft: Draft, parameter: Parameter) -> Value:
    found = draft.graph.pick(lambda value: draft.fits(value, parameter, None)) if draft.chance(60) else None
    if found is None:
        element = draft.one_of("float", "float", "int64")
        parts = [draft.graph.data(element, (2, draft.number(1, 2))) for _ in range(draft.number(1, 3))]
        made = draft.graph.add("SequenceConstruct", parts, 1)
        if made is None or not draft.fits(made[0], parameter, None):
            raise _CannotDraw
        found = made[0]
    draft.types[parameter.type] = found.type
    return found


def _ranks(version: OperatorVersion) -> tuple[int, int]:
    found = RANKS.get(version.name) or RANKS.get(version.shape)
    has_axis = any(
        name in ("axis", "axes") for name in (*version.attributes, *(p.name for p in version.inputs))
    )
    return found or (1 if has_axis else 0, 4)


def _attribute(draft: Draft, name: str) -> Any:
    choose = _choice(draft.version, name, 0)
    found = choose(draft) if choose else draft.stated(name)
    if found is None:
        return None
    listed = found.tolist() if isinstance(found, np.ndarray) else found
    kind = onnx.AttributeProto.AttributeType.Value(draft.version.attributes[name].type)
    return helper.make_attribute(name, listed, attr_type=kind)


def _add(draft: Draft, inputs: Sequence[Value | None], attributes: dict[str, Any]) -> bool:
    version = draft.version
    domain = "" if version.domain == "ai.onnx" else version.domain
    if version.determinism == "non_deterministic" and version.name.startswith(("Random", "Bern", "Multi")):
        return _add_random(draft, inputs, attributes)
    rounds = version.bridge not in ("order", "extreme")
    made = draft.graph.add(version.name, inputs, _outputs(draft), attributes, domain)
    if made is None:
        return False
    for position, value in enumerate(made):
        if rounds and value.type and is_float(value.type.removeprefix("seq(tensor(")):
            draft.graph.values[position - len(made)] = value._replace(exact=False)
    return True


def _outputs(draft: Draft) -> list[bool]:
    """Which outputs there are."""
    outputs = draft.version.outputs
    if "outputs" in draft.facts or outputs[-1].option == "variadic":
        return [True] * draft.facts.get("outputs", 1)
    if draft.version.shape in GAPS:
        found = [draft.chance(60) for _ in outputs]
        return found[: max([place + 1 for place, there in enumerate(found) if there], default=0)] or [True]
    least = sum(each.option != "optional" for each in outputs)
    return [True] * max(1, draft.number(least, len(outputs)))


def _add_random(draft: Draft, inputs: Sequence[Value | None], attributes: dict[str, Any]) -> bool:
    """What is drawn is the same in no two runs, but its shape is."""
    graph, name = draft.graph, draft.version.name
    drawn, shape = graph.name("v"), graph.name("v")
    node = helper.make_node(name, [each.name if each else "" for each in inputs], [drawn])
    node.attribute.extend(attributes.values())
    nodes = [node, helper.make_node("Shape", [drawn], [shape])]
    return graph.add_nodes(nodes, [shape]) is not None
