"""Implementations of the declarative rewrites (verbs) of `registry.steps`."""

from functools import partial, singledispatch

from opshift.adapters.core.rewriter import Rewriter, StepFunction, is_same_value
from opshift.model.errors import CannotConvert
from opshift.model.node import Node, Tensor
from opshift.model.types import short_type
from opshift.registry.models import OperatorVersion, Parameter
from opshift.registry.steps import (
    AddAttribute,
    AnyVerb,
    AttributeToInput,
    DropAttribute,
    IgnoreAttribute,
    InputToAttribute,
    RenameAttribute,
    RenameOp,
    RenameValue,
    RequireAttribute,
    RequireNoInput,
    RequireNoOutput,
)


def make_verbs_step(verbs: tuple[AnyVerb, ...]) -> StepFunction:
    """Return a step that applies declarative changes (verbs), such as DropAttribute, in order."""
    changes = [partial(_apply_verb.dispatch(type(verb)), verb) for verb in verbs]

    def step(node: Node, out: Rewriter) -> None:
        for change in changes:
            node = change(node, out)
        out.replace(node)

    return step


@singledispatch
def _apply_verb(verb: object, node: Node, out: Rewriter) -> Node:
    raise TypeError(f"no implementation of the verb {type(verb).__name__}")


@_apply_verb.register
def _(verb: DropAttribute, node: Node, out: Rewriter) -> Node:
    name, default = verb.attribute, out.source.attributes[verb.attribute].default
    value = node.attribute(name, default)
    if not is_same_value(value, default):
        supported = f"{_id_or_none(out.target)} supports only the default, {_value_text(default)}"
        reason = f"{name} is {_value_text(value)}; {supported}"
        raise CannotConvert(reason, "value.unsupported")
    return _without_attribute(name, node)


@_apply_verb.register
def _(verb: IgnoreAttribute, node: Node, out: Rewriter) -> Node:
    return _without_attribute(verb.attribute, node)


def _without_attribute(name: str, node: Node) -> Node:
    return node.with_(attributes=node.without(name)) if name in node.attributes else node


@_apply_verb.register
def _(verb: AddAttribute, node: Node, out: Rewriter) -> Node:
    if verb.attribute in node.attributes:
        return node
    return node.with_(attributes={**node.attributes, verb.attribute: verb.value})


@_apply_verb.register
def _(verb: RenameAttribute, node: Node, out: Rewriter) -> Node:
    if verb.attribute not in node.attributes:
        return node
    value = node.attributes[verb.attribute]
    return node.with_(attributes={**node.without(verb.attribute), verb.to: value})


@_apply_verb.register
def _(verb: AttributeToInput, node: Node, out: Rewriter) -> Node:
    position, parameter = _position_and_parameter(out.target, verb.input_name)
    default = out.source.attributes[verb.attribute].default
    required = parameter.option == "single"
    if required and default is None and verb.attribute not in node.attributes:
        reason = f"the node has no attribute {verb.attribute}, which {_id_or_none(out.target)} requires"
        raise CannotConvert(reason, "attribute.missing")
    inputs = [*node.inputs, *[""] * (position - len(node.inputs))]
    left_out = not required and out.has_default(node, verb.attribute, default)
    # The new input is the last one: omit an optional input if the attribute has its default.
    inputs[position:] = [""]
    if not left_out:
        element_type = _type_of(parameter, node, out)
        inputs[-1] = out.constant_of_attribute(node, verb.attribute, default, element_type, verb.rank)
    while inputs and not inputs[-1]:
        inputs.pop()
    return node.with_(inputs=inputs, attributes=node.without(verb.attribute))


@_apply_verb.register
def _(verb: InputToAttribute, node: Node, out: Rewriter) -> Node:
    position, _ = _position_and_parameter(out.source, verb.input)
    name, inputs = node.input(position), node.inputs[:position]
    if not name:
        return node.with_(inputs=inputs)
    constant = out.require_constant(name, f"input {verb.input}")
    is_list = out.target is not None and out.target.attributes[verb.attribute_name].type.endswith("S")
    value = constant.values if is_list else constant.scalar
    return node.with_(inputs=inputs, attributes={**node.attributes, verb.attribute_name: value})


@_apply_verb.register
def _(verb: RequireAttribute, node: Node, out: Rewriter) -> Node:
    declared = out.source.attributes.get(verb.attribute)
    value = node.attribute(verb.attribute, declared.default if declared else None)
    if not is_same_value(value, verb.value):
        required = f"{_id_or_none(out.target)} requires {_value_text(verb.value)}"
        reason = f"{verb.attribute} is {_value_text(value)}; {required}"
        raise CannotConvert(reason, "value.unsupported")
    return node


@_apply_verb.register
def _(verb: RenameValue, node: Node, out: Rewriter) -> Node:
    value = node.attribute(verb.attribute)
    renamed = verb.values.get(value.decode()) if isinstance(value, bytes) else None
    if renamed is None:
        return node
    return node.with_(attributes={**node.attributes, verb.attribute: renamed.encode()})


@_apply_verb.register
def _(verb: RequireNoInput, node: Node, out: Rewriter) -> Node:
    position, _ = _position_and_parameter(out.source, verb.input)
    if node.input(position):
        reason = f"input {verb.input} is used, which {_id_or_none(out.target)} does not have"
        raise CannotConvert(reason, "input.unsupported")
    return node.with_(inputs=node.inputs[:position])


@_apply_verb.register
def _(verb: RequireNoOutput, node: Node, out: Rewriter) -> Node:
    found = out.source.output_named(verb.output)
    position = found[0] if found else len(out.source.outputs)
    if out.is_used(node.output(position)):
        reason = f"output {verb.output} is used, which {_id_or_none(out.target)} does not have"
        raise CannotConvert(reason, "output.unsupported")
    return node.with_(outputs=node.outputs[:position])


@_apply_verb.register
def _(verb: RenameOp, node: Node, out: Rewriter) -> Node:
    return node.with_(op_type=verb.op_type)


def _type_of(parameter: Parameter, node: Node, out: Rewriter) -> str:
    """Return the element type of a new constant input.

    The type is the only type of the parameter, or int64 if the parameter has only int32 and int64. Otherwise,
    the first input with the same type variable determines the type: float if this is the new input.
    """
    assert out.target is not None
    types, inputs = out.target.types_of(parameter), out.target.inputs
    if len(types) == 1:
        return short_type(types[0])
    if set(types) <= {"tensor(int32)", "tensor(int64)"}:
        return "int64" if "tensor(int64)" in types else "int32"
    shared = next(position for position, each in enumerate(inputs) if each.type == parameter.type)
    return "float" if inputs[shared] == parameter else out.element_type(node.inputs[shared])


def _position_and_parameter(version: OperatorVersion | None, name: str) -> tuple[int, Parameter]:
    found = version.input_named(name) if version else None
    assert found is not None, "the registry checks this when it loads the step"
    return found


def _id_or_none(target: OperatorVersion | None) -> str:
    return str(target.id) if target else "the target"


def _value_text(value: object) -> str:
    if isinstance(value, bytes):
        return repr(value.decode(errors="replace"))
    return repr(list(value)) if isinstance(value, tuple) and not isinstance(value, Tensor) else repr(value)
