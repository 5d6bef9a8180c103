"""Build models of a single node or of a function body."""

from collections.abc import Mapping, Sequence
from typing import Any

from opshift.analysis.verification.numpy_types import Array, array_element_type
from opshift.model.attributes import ATTRIBUTE_TYPES, encode, write_attribute
from opshift.model.messages import IR_VERSION, AttributeProto, GraphProto, ModelProto, TensorProto
from opshift.model.node import Tensor
from opshift.model.operator_ids import DEFAULT_DOMAIN, model_domain
from opshift.model.tensors import write_tensor
from opshift.model.types import fill_type
from opshift.proposals.content.models import attribute_value_problem
from opshift.proposals.evidence.cases import BadValue, Case
from opshift.registry.bodies import BodyNode, FromAttribute
from opshift.registry.models import Attribute
from opshift.registry.registry import Registry


def input_names(case: Case) -> list[str]:
    """Return the name of each input in the model of a case; `""` for an omitted input."""
    return ["" if each is None else f"input_{i}" for i, each in enumerate(case.inputs)]


def feeds_of(case: Case) -> dict[str, Array]:
    """Return the input arrays of a case, by input name in its model; omitted inputs are left out."""
    pairs = zip(input_names(case), case.inputs, strict=True)
    return {name: array for name, array in pairs if array is not None}


def with_initializers(model: ModelProto, case: Case) -> ModelProto:
    """Return a copy of the model in which every input except the first is an initializer."""
    changed = type(model)()
    changed.CopyFrom(model)
    del changed.graph.input[1:]
    for name, array in list(feeds_of(case).items())[1:]:
        write_array(changed.graph.initializer.add(), array, name)
    return changed


def write_array(message: TensorProto, array: Array, name: str) -> None:
    """Write an array to an empty TensorProto."""
    values = tuple(map(encode, array.ravel().tolist()))
    write_tensor(message, Tensor(array_element_type(array), array.shape, values), name)


def node_model(case: Case, outputs: Sequence[Array | None], opset: int) -> ModelProto:
    """Return a model of a single node with the inputs and attributes of the case."""
    model = _empty_model(case, outputs, {DEFAULT_DOMAIN: 18, case.version.domain: opset})
    node = model.graph.node.add(op_type=case.version.name, domain=model_domain(case.version.domain))
    node.input.extend(input_names(case))
    node.output.extend("" if each is None else f"output_{i}" for i, each in enumerate(outputs))
    for name, value in case.attributes.items():
        _set_attribute(node.attribute.add(), name, value, case.version.attributes[name])
    return model


def body_model(case: Case, outputs: Sequence[Array | None], registry: Registry) -> ModelProto:
    """Return the function body of a case's operator as a model, with attribute references replaced by values.

    Raises:
        ResolveError: the imported opset does not define the operator of a node.
        BadValue: the value of an attribute does not match its type.
        KeyError: a node has an unknown attribute, or a domain that the body does not import.
    """
    version = case.version
    assert version.body is not None
    model = _empty_model(case, outputs, version.body.opset_imports)
    names = {formal.name: "" for formal in version.inputs}
    names |= {formal.name: name for formal, name in zip(version.inputs, input_names(case), strict=False)}
    names |= {version.outputs[i].name: f"output_{i}" for i, each in enumerate(outputs) if each is not None}
    inner = (name for each in version.body.nodes for name in (*each.inputs, *each.outputs) if name)
    # The prefix distinguishes values of the body from inputs and outputs of the model.
    names = {**{name: f"body_{name}" for name in inner}, **names}
    for each in version.body.nodes:
        _add_node(model.graph, each, names, case, registry)
    return model


def _add_node(
    graph: GraphProto, each: BodyNode, names: Mapping[str, str], case: Case, registry: Registry
) -> None:
    body = case.version.body
    assert body is not None
    operator = registry.get_schema(each.op_type, body.opset_imports[each.domain], each.domain)
    node = graph.node.add(op_type=each.op_type, domain=model_domain(each.domain))
    node.input.extend(names.get(name, name) for name in each.inputs)
    node.output.extend(names.get(name, name) for name in each.outputs)
    for name, value in each.attributes.items():
        resolved = _resolve_value(value, case)
        if resolved is not None:
            _set_attribute(node.attribute.add(), name, resolved, operator.attributes[name])


def _resolve_value(value: object, case: Case) -> object:
    if not isinstance(value, FromAttribute):
        return value
    given = case.attributes.get(value.attribute)
    return case.version.attributes[value.attribute].default if given is None else given


def _empty_model(case: Case, outputs: Sequence[Array | None], imports: Mapping[str, int]) -> ModelProto:
    # IR version 10 instead of the newest, so that older runtimes can load the model.
    model = ModelProto(ir_version=min(IR_VERSION, 10))
    model.graph.name = "example"
    for domain, opset in imports.items():
        model.opset_import.add(domain=model_domain(domain), version=opset)
    for name, array in feeds_of(case).items():
        fill_type(model.graph.input.add(name=name).type, array_element_type(array), array.shape)
    for position, result in enumerate(outputs):
        if result is not None:
            value = model.graph.output.add(name=f"output_{position}")
            fill_type(value.type, array_element_type(result), None)
    return model


def _set_attribute(attribute: AttributeProto, name: str, value: Any, declared: Attribute) -> None:
    problem = attribute_value_problem(name, value, declared)
    if problem:
        raise BadValue(problem)
    write_attribute(attribute, name, ATTRIBUTE_TYPES[declared.type], value)
