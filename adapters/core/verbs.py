"""Implementations of the declarative rewrites (verbs) of `registry.steps`."""

from __future__ import annotations

from collections.abc import Callable
from functools import singledispatch

from opshift.adapters.core.rewriter import Rewriter
from opshift.model.errors import CannotConvert
from opshift.model.node import Node, Tensor
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

VerbFunction = Callable[[Node, Rewriter], Node]


def make_verbs_step(
    verbs: tuple[AnyVerb, ...], source: OperatorVersion, target: OperatorVersion | None
) -> Callable[[Node, Rewriter], None]:
    """Return the function that applies the verbs of a step in order."""
    changes = [_bind(verb, source, target) for verb in verbs]

    def step(node: Node, out: Rewriter) -> None:
        for change in changes:
            node = change(node, out)
        out.replace(node)

    return step


@singledispatch
def _bind(verb: object, source: OperatorVersion, target: OperatorVersion | None) -> VerbFunction:
    raise TypeError(f"no implementation of the verb {type(verb).__name__}")


@_bind.register
def _(verb: DropAttribute, source: OperatorVersion, target: OperatorVersion | None) -> VerbFunction:
    name, default = verb.attribute, source.attributes[verb.attribute].default

    def change(node: Node, out: Rewriter) -> Node:
        if name not in node.attributes:
            return node
        value = node.attribute(name)
        if not same_value(value, default):
            reason = f"{name} is {_shown(value)}; {_id(target)} supports only the default, {_shown(default)}"
            raise CannotConvert(reason)
        return node.with_(attributes=node.without(name))

    return change


@_bind.register
def _(verb: IgnoreAttribute, source: OperatorVersion, target: OperatorVersion | None) -> VerbFunction:
    def change(node: Node, out: Rewriter) -> Node:
        if verb.attribute not in node.attributes:
            return node
        return node.with_(attributes=node.without(verb.attribute))

    return change


@_bind.register
def _(verb: AddAttribute, source: OperatorVersion, target: OperatorVersion | None) -> VerbFunction:
    def change(node: Node, out: Rewriter) -> Node:
        if verb.attribute in node.attributes:
            return node
        return node.with_(attributes={**node.attributes, verb.attribute: verb.value})

    return change


@_bind.register
def _(verb: RenameAttribute, source: OperatorVersion, target: OperatorVersion | None) -> VerbFunction:
    def change(node: Node, out: Rewriter) -> Node:
        if verb.attribute not in node.attributes:
            return node
        renamed = {**node.without(verb.attribute), verb.to: node.attributes[verb.attribute]}
        return node.with_(attributes=renamed)

    return change


@_bind.register
def _(verb: AttributeToInput, source: OperatorVersion, target: OperatorVersion | None) -> VerbFunction:
    position, parameter = _input(target, verb.input_name)
    default = source.attributes[verb.attribute].default
    type_of = _constant_type(target, parameter)
    required = parameter.option == "single"

    def change(node: Node, out: Rewriter) -> Node:
        value = node.attribute(verb.attribute, default)
        if required and value is None:
            raise CannotConvert(f"the node has no attribute {verb.attribute}, which {_id(target)} requires")
        inputs = [*node.inputs, *[""] * (position - len(node.inputs))]
        left_out = not required and same_value(value, default)
        # The new input is the last one: an attribute at its default becomes an omitted input.
        inputs[position:] = ["" if left_out else out.constant(value, type_of(node, out), verb.rank)]
        while inputs and not inputs[-1]:
            inputs.pop()
        return node.with_(inputs=inputs, attributes=node.without(verb.attribute))

    return change


@_bind.register
def _(verb: InputToAttribute, source: OperatorVersion, target: OperatorVersion | None) -> VerbFunction:
    position, _ = _input(source, verb.input)
    is_list = target is not None and target.attributes[verb.attribute_name].type.endswith("S")

    def change(node: Node, out: Rewriter) -> Node:
        name = node.input(position)
        inputs = node.inputs[:position]
        if not name:
            return node.with_(inputs=inputs)
        constant = out.require_constant(name, f"input {verb.input}")
        value = constant.values if is_list else constant.scalar
        return node.with_(inputs=inputs, attributes={**node.attributes, verb.attribute_name: value})

    return change


@_bind.register
def _(verb: RequireAttribute, source: OperatorVersion, target: OperatorVersion | None) -> VerbFunction:
    declared = source.attributes.get(verb.attribute)

    def change(node: Node, out: Rewriter) -> Node:
        value = node.attribute(verb.attribute, declared.default if declared else None)
        if not same_value(value, verb.value):
            raise CannotConvert(
                f"{verb.attribute} is {_shown(value)}; {_id(target)} requires {_shown(verb.value)}"
            )
        return node

    return change


@_bind.register
def _(verb: RenameValue, source: OperatorVersion, target: OperatorVersion | None) -> VerbFunction:
    def change(node: Node, out: Rewriter) -> Node:
        value = node.attribute(verb.attribute)
        renamed = verb.values.get(value.decode()) if isinstance(value, bytes) else None
        if renamed is None:
            return node
        return node.with_(attributes={**node.attributes, verb.attribute: renamed.encode()})

    return change


@_bind.register
def _(verb: RequireNoInput, source: OperatorVersion, target: OperatorVersion | None) -> VerbFunction:
    position, _ = _input(source, verb.input)

    def change(node: Node, out: Rewriter) -> Node:
        if node.input(position):
            raise CannotConvert(f"input {verb.input} is used, which {_id(target)} does not have")
        return node.with_(inputs=node.inputs[:position])

    return change


@_bind.register
def _(verb: RequireNoOutput, source: OperatorVersion, target: OperatorVersion | None) -> VerbFunction:
    found = source.output_named(verb.output)
    position = found[0] if found else len(source.outputs)

    def change(node: Node, out: Rewriter) -> Node:
        if out.is_used(node.output(position)):
            raise CannotConvert(f"output {verb.output} is used, which {_id(target)} does not have")
        return node.with_(outputs=node.outputs[:position])

    return change


@_bind.register
def _(verb: RenameOp, source: OperatorVersion, target: OperatorVersion | None) -> VerbFunction:
    def change(node: Node, out: Rewriter) -> Node:
        return node.with_(op_type=verb.op_type)

    return change


def same_value(value: object, declared: object) -> bool:
    """Return whether an attribute has the declared value; strings are bytes in a model and text in YAML."""
    if isinstance(value, bytes):
        return bool(value == str(declared).encode())
    if isinstance(value, tuple | list):
        return (
            isinstance(declared, tuple | list)
            and len(value) == len(declared)
            and all(same_value(a, b) for a, b in zip(value, declared, strict=True))
        )
    return bool(value == declared)


def _constant_type(target: OperatorVersion | None, parameter: Parameter) -> Callable[[Node, Rewriter], str]:
    """Return a function that determines the element type of a new constant input.

    It is the only type of the parameter, int64 or int32 if only these are possible, else the element type of
    the first input with the same type variable, or float.
    """
    assert target is not None
    types = target.types_of(parameter)
    fixed = types[0].removeprefix("tensor(").removesuffix(")") if len(types) == 1 else "float"
    if set(types) <= {"tensor(int32)", "tensor(int64)"}:
        fixed = "int64" if "tensor(int64)" in types else "int32"
    shared = next(i for i, p in enumerate(target.inputs) if p.type == parameter.type)
    if len(types) > 1 and fixed == "float" and target.inputs[shared] is not parameter:
        return lambda node, out: out.element_type(node.inputs[shared])
    return lambda node, out: fixed


def _input(version: OperatorVersion | None, name: str) -> tuple[int, Parameter]:
    found = version.input_named(name) if version else None
    assert found is not None, "the registry checks this when it loads the step"
    return found


def _id(target: OperatorVersion | None) -> str:
    return str(target.id) if target else "the target"


def _shown(value: object) -> str:
    if isinstance(value, bytes):
        return repr(value.decode(errors="replace"))
    return repr(list(value)) if isinstance(value, tuple) and not isinstance(value, Tensor) else repr(value)
