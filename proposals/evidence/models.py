"""Models of one node, and of a function body."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from opshift.adapters.node import Tensor
from opshift.adapters.tensors import write_tensor
from opshift.converter.types import fill_type
from opshift.converter.verification.arrays import Array, element_type_of
from opshift.proposals.evidence.arrays import BadValue
from opshift.proposals.evidence.cases import Case
from opshift.proposals.values import is_of
from opshift.registry.catalogue import Registry
from opshift.registry.function_bodies import BodyNode, FromAttribute
from opshift.registry.messages import IR_VERSION, ModelProto
from opshift.registry.models import Attribute
from opshift.registry.names import DEFAULT_DOMAIN

_FIELDS = {
    "FLOAT": (1, "f"), "INT": (2, "i"), "STRING": (3, "s"),
    "FLOATS": (6, "floats"), "INTS": (7, "ints"), "STRINGS": (8, "strings"),
}  # fmt: skip


def input_names(case: Case) -> list[str]:
    """The name of each input of the model of a case, `""` where it is left out."""
    return ["" if each is None else f"input_{i}" for i, each in enumerate(case.inputs)]


def feeds_of(case: Case) -> dict[str, Array]:
    """What to feed to the model of a case."""
    pairs = zip(input_names(case), case.inputs, strict=True)
    return {name: array for name, array in pairs if array is not None}


def with_constants(model: Any, case: Case) -> Any:
    """The model with every input but the first as a constant of its own."""
    changed = type(model)()
    changed.CopyFrom(model)
    for name, array in list(feeds_of(case).items())[1:]:
        kept = [each for each in changed.graph.input if each.name != name]
        del changed.graph.input[:]
        changed.graph.input.extend(kept)
        write_tensor(changed.graph.initializer.add(), _tensor(array), name)
    return changed


def _tensor(array: Array) -> Tensor:
    values = (each.encode() if isinstance(each, str) else each for each in array.ravel().tolist())
    return Tensor(element_type_of(array), array.shape, tuple(values))


def node_model(case: Case, outputs: Sequence[Array | None], opset: int) -> Any:
    """A model of one node that states nothing more than the case does."""
    model = _model(case, outputs, _imports(case.version.domain, opset))
    node = model.graph.node.add(op_type=case.version.name, domain=_wire(case.version.domain))
    node.input.extend(input_names(case))
    node.output.extend("" if each is None else f"output_{i}" for i, each in enumerate(outputs))
    for name, value in case.attributes.items():
        _fill(node.attribute.add(), name, value, case.version.attributes[name])
    return model


def body_model(case: Case, outputs: Sequence[Array | None], registry: Registry) -> Any:
    """The function body of a case's operator as a model, its attributes put in.

    Raises:
        ResolveError: a node of it is no operator of its opset.
        BadValue: an attribute has a value of another type.
    """
    version = case.version
    assert version.body is not None
    model = _model(case, outputs, version.body.opset_imports)
    names = dict(zip((formal.name for formal in version.inputs), input_names(case), strict=False))
    names |= {formal.name: "" for formal in version.inputs if formal.name not in names}
    names |= {version.outputs[i].name: f"output_{i}" for i, each in enumerate(outputs) if each is not None}
    for each in version.body.nodes:
        _add_node(model.graph, each, names, case, registry)
    return model


def _add_node(graph: Any, each: BodyNode, names: Mapping[str, str], case: Case, registry: Registry) -> None:
    body = case.version.body
    assert body is not None
    operator = registry.get_schema(each.op_type, body.opset_imports[each.domain], each.domain)
    node = graph.node.add(op_type=each.op_type, domain=_wire(each.domain))
    node.input.extend(names.get(name, name) for name in each.inputs)
    node.output.extend(names.get(name, name) for name in each.outputs)
    for name, value in each.attributes.items():
        found = _value(value, case)
        if found is not None:
            _fill(node.attribute.add(), name, found, operator.attributes[name])


def _value(value: Any, case: Case) -> Any:
    if not isinstance(value, FromAttribute):
        return value
    stated = case.attributes.get(value.attribute)
    return case.version.attributes[value.attribute].default if stated is None else stated


def _model(case: Case, outputs: Sequence[Array | None], imports: Mapping[str, int]) -> Any:
    model = ModelProto(ir_version=min(IR_VERSION, 10))
    model.graph.name = "example"
    for domain, opset in imports.items():
        model.opset_import.add(domain=_wire(domain), version=opset)
    for name, array in feeds_of(case).items():
        fill_type(_added(model.graph.input, name), element_type_of(array), array.shape)
    for position, result in enumerate(outputs):
        if result is not None:
            fill_type(_added(model.graph.output, f"output_{position}"), element_type_of(result), None)
    return model


def _added(values: Any, name: str) -> Any:
    return values.add(name=name).type


def _imports(domain: str, opset: int) -> dict[str, int]:
    return {domain: opset} if domain == DEFAULT_DOMAIN else {DEFAULT_DOMAIN: 18, domain: opset}


def _wire(domain: str) -> str:
    return "" if domain == DEFAULT_DOMAIN else domain


def _fill(attribute: Any, name: str, value: Any, declared: Attribute) -> None:
    if not is_of(value, declared):
        raise BadValue(f"{name} is {declared.type}; {value!r} is not")
    attribute.name = name
    attribute.type, field = _FIELDS[declared.type]
    if field.endswith("s") and field != "s":
        getattr(attribute, field).extend(map(_bytes, value))
    else:
        setattr(attribute, field, _bytes(value))


def _bytes(value: Any) -> Any:
    return value.encode() if isinstance(value, str) else value
