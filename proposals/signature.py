"""Signature of an operator version and its changes, for the review page."""

from __future__ import annotations

from collections.abc import Iterator

from opshift.proposals.draft import Defined
from opshift.proposals.markdown import cell, paragraphs, table
from opshift.registry.changes.classify import classify
from opshift.registry.function_bodies import Body, BodyNode, FromAttribute
from opshift.registry.models import Attribute, OperatorVersion, Parameter
from opshift.registry.steps import Answer, Refuse


def signature(version: OperatorVersion) -> Iterator[str]:
    """Yield identity, description, inputs, outputs, attributes, types and body of a version."""
    yield from (f"`{version.id}`, {version.status.lower()}, {version.determinism.replace('_', ' ')}", "")
    yield from paragraphs(version.description)
    sides = (("input", version.inputs), ("output", version.outputs))
    rows = [_parameter_row(side, formal, version) for side, formals in sides for formal in formals]
    rows += [_attribute_row(name, each) for name, each in version.attributes.items()]
    yield from table(("", "name", "type", "", "default"), rows)
    yield from ("", f"Shapes: `{version.shape or 'none'}`.")
    if version.body is not None:
        yield from ("", "```", *_body_lines(version.body), "```")


def differences(draft: Defined) -> Iterator[str]:
    """Yield the changes since the previous version and the way models are converted."""
    version, step = draft.version, draft.version.step
    if step is not None:
        yield from paragraphs(step.change)
        steps = {"up": step.up, "down": step.down}
        yield from (f"* {direction}: {_action_text(action)}" for direction, action in steps.items())
    elif version.before is not None:
        yield f"* in the previous opset: {_action_text(version.before)}"
    if draft.previous is not None:
        yield ""
        changes = classify(draft.previous, version)
        yield from (f"* {cell(each.change)} ({each.change_class})" for each in changes)
    retirement = version.removal or version.deprecation
    if retirement is not None:
        yield f"* replaced by {retirement.replaced_by}: {cell(retirement.mapping)}"


def _parameter_row(side: str, formal: Parameter, version: OperatorVersion) -> tuple[str, ...]:
    types = ", ".join(each.removeprefix("tensor(").removesuffix(")") for each in version.types_of(formal))
    return (side, f"`{formal.name}`", f"{formal.type}: {types}", formal.option, "")


def _attribute_row(name: str, each: Attribute) -> tuple[str, ...]:
    default = "" if each.default is None else f"`{each.default}`"
    return ("attribute", f"`{name}`", each.type, "required" if each.required else "optional", default)


def _body_lines(body: Body) -> Iterator[str]:
    yield ", ".join(f"{domain} {opset}" for domain, opset in body.opset_imports.items())
    yield from map(_node_text, body.nodes)


def _node_text(node: BodyNode) -> str:
    stated = ", ".join(f"{name}={_value_text(value)}" for name, value in node.attributes.items())
    attributes = f" <{stated}>" if stated else ""
    return f"{', '.join(node.outputs)} = {node.op_type}{attributes}({', '.join(node.inputs)})"


def _value_text(value: object) -> str:
    return f"@{value.attribute}" if isinstance(value, FromAttribute) else str(value)


def _action_text(action: Answer | str | None) -> str:
    if isinstance(action, Refuse):
        return f"refused: {action.refuse}"
    if isinstance(action, tuple):
        return ", ".join(each.name for each in action)
    return action or "derived from the types"
