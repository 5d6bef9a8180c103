"""The declared rewrites: what each verb of `registry.steps` does to a node."""

from __future__ import annotations

from collections.abc import Callable
from functools import singledispatch
from typing import Any

from opshift.adapters.node import Node, Tensor
from opshift.adapters.refusal import CannotConvert
from opshift.adapters.rewriter import Rewriter
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


def run_verbs(verbs: tuple[AnyVerb, ...]) -> Callable[[Node, Rewriter], None]:
    """One function that applies verbs in their order."""

    def step(node: Node, out: Rewriter) -> None:
        changed = node
        for verb in verbs:
            changed = _apply(verb, changed, out)
        out.become(changed)

    return step


@singledispatch
def _apply(verb: Any, node: Node, out: Rewriter) -> Node:
    raise TypeError(f"no function for {type(verb).__name__}")


@_apply.register
def _(verb: DropAttribute, node: Node, out: Rewriter) -> Node:
    if verb.attribute not in node.attributes:
        return node
    default = out.source.attributes[verb.attribute].default
    stated = node.attribute(verb.attribute)
    if not same_value(stated, default):
        raise CannotConvert(
            f"{verb.attribute} is {_shown(stated)}; {_target(out)} knows only its default, {_shown(default)}",
        )
    return node.with_(attributes=node.without(verb.attribute))


@_apply.register
def _(verb: IgnoreAttribute, node: Node, out: Rewriter) -> Node:
    if verb.attribute not in node.attributes:
        return node
    return node.with_(attributes=node.without(verb.attribute))


@_apply.register
def _(verb: AddAttribute, node: Node, out: Rewriter) -> Node:
    if verb.attribute in node.attributes:
        return node
    return node.with_(attributes={**node.attributes, verb.attribute: verb.value})


@_apply.register
def _(verb: RenameAttribute, node: Node, out: Rewriter) -> Node:
    if verb.attribute not in node.attributes:
        return node
    renamed = {**node.without(verb.attribute), verb.to: node.attribute(verb.attribute)}
    return node.with_(attributes=renamed)


@_apply.register
def _(verb: AttributeToInput, node: Node, out: Rewriter) -> Node:
    position, parameter = _input(out.target, verb.input_name)
    inputs = [*node.inputs, *[""] * (position - len(node.inputs))]
    default = out.source.attributes[verb.attribute].default
    value = node.attribute(verb.attribute, default)
    if parameter.option == "optional" and same_value(value, default):
        value = None
    if value is None and parameter.option == "single":
        raise CannotConvert(f"{verb.attribute} is not stated, which {_target(out)} requires")
    name = "" if value is None else out.constant(value, _constant_type(node, out, parameter), verb.rank)
    inputs[position : position + 1] = [name]
    while inputs and not inputs[-1]:
        inputs.pop()
    return node.with_(inputs=inputs, attributes=node.without(verb.attribute))


@_apply.register
def _(verb: InputToAttribute, node: Node, out: Rewriter) -> Node:
    position, _ = _input(out.source, verb.input)
    name = node.input(position)
    inputs = node.inputs[:position]
    if not name:
        return node.with_(inputs=inputs)
    value = out.require_constant(name, f"input {verb.input}")
    listed = out.target is not None and out.target.attributes[verb.attribute_name].type.endswith("S")
    stated = value.values if listed else value.scalar
    return node.with_(inputs=inputs, attributes={**node.attributes, verb.attribute_name: stated})


@_apply.register
def _(verb: RequireAttribute, node: Node, out: Rewriter) -> Node:
    declared = out.source.attributes.get(verb.attribute)
    stated = node.attribute(verb.attribute, declared.default if declared else None)
    if not same_value(stated, verb.value):
        raise CannotConvert(
            f"{verb.attribute} is {_shown(stated)}; {_target(out)} takes {_shown(verb.value)} only"
        )
    return node


@_apply.register
def _(verb: RenameValue, node: Node, out: Rewriter) -> Node:
    stated = node.attribute(verb.attribute)
    if not isinstance(stated, bytes):
        return node
    renamed = verb.values.get(stated.decode())
    if renamed is None:
        return node
    return node.with_(attributes={**node.attributes, verb.attribute: renamed.encode()})


@_apply.register
def _(verb: RequireNoInput, node: Node, out: Rewriter) -> Node:
    position, _ = _input(out.source, verb.input)
    if node.input(position):
        raise CannotConvert(f"input {verb.input} is used, which {_target(out)} does not have")
    return node.with_(inputs=node.inputs[:position])


@_apply.register
def _(verb: RequireNoOutput, node: Node, out: Rewriter) -> Node:
    found = out.source.output_named(verb.output)
    position = found[0] if found else len(node.outputs)
    if out.is_used(node.output(position)):
        raise CannotConvert(f"output {verb.output} is used, which {_target(out)} does not have")
    return node.with_(outputs=node.outputs[:position])


@_apply.register
def _(verb: RenameOp, node: Node, out: Rewriter) -> Node:
    return node.with_(op_type=verb.op_type)


def same_value(stated: Any, declared: Any) -> bool:
    """Whether an attribute's value is the declared one; strings are bytes in a model and text in YAML."""
    if isinstance(stated, bytes):
        return bool(stated == str(declared).encode())
    if isinstance(stated, tuple | list):
        return (
            isinstance(declared, tuple | list)
            and len(stated) == len(declared)
            and all(same_value(a, b) for a, b in zip(stated, declared, strict=True))
        )
    return bool(stated == declared)


def _constant_type(node: Node, out: Rewriter, parameter: Parameter) -> str:
    """The one that the signature leaves a new input, else that of an input which shares its variable."""
    assert out.target is not None
    types = out.target.types_of(parameter)
    if len(types) == 1 or set(types) <= {"tensor(int32)", "tensor(int64)"}:
        return "int64" if "tensor(int64)" in types else types[0].removeprefix("tensor(").removesuffix(")")
    shared = next(i for i, p in enumerate(out.target.inputs) if p.type == parameter.type)
    if out.target.inputs[shared] is parameter:
        return "float"
    return out.element_type(node.inputs[shared])


def _input(version: OperatorVersion | None, name: str) -> tuple[int, Parameter]:
    found = version.input_named(name) if version else None
    assert found is not None, "checked when the step was loaded"
    return found


def _target(out: Rewriter) -> str:
    return str(out.target.id) if out.target else "the target"


def _shown(value: Any) -> str:
    if isinstance(value, bytes):
        return repr(value.decode(errors="replace"))
    return repr(list(value)) if isinstance(value, tuple) and not isinstance(value, Tensor) else repr(value)
