"""An operator version as reviewers read it, and what is new in it."""

from __future__ import annotations

from collections.abc import Iterator

from opshift.proposals.draft import Defined
from opshift.proposals.markdown import cell, paragraphs, table
from opshift.registry.changes.classify import classify
from opshift.registry.function_bodies import Body, BodyNode, FromAttribute
from opshift.registry.models import Attribute, OperatorVersion, Parameter
from opshift.registry.steps import Answer, Refuse


def signature(version: OperatorVersion) -> Iterator[str]:
    """Identity, description, inputs, outputs, attributes, types and body."""
    yield from (f"`{version.id}`, {version.status.lower()}, {version.determinism.replace('_', ' ')}", "")
    yield from paragraphs(version.description)
    sides = (("input", version.inputs), ("output", version.outputs))
    rows = [_parameter(side, formal, version) for side, formals in sides for formal in formals]
    rows += [_attribute(name, each) for name, each in version.attributes.items()]
    yield from table(("", "name", "type", "", "default"), rows)
    yield from ("", f"Shapes: `{version.shape or 'none'}`.")
    if version.body is not None:
        yield from ("", "```", *_body(version.body), "```")


def differences(draft: Defined) -> Iterator[str]:
    """What differs from the version before, and how models are moved."""
    version, step = draft.version, draft.version.step
    if step is not None:
        yield from paragraphs(step.change)
        ways = {"up": step.up, "down": step.down}
        yield from (f"* {direction}: {_answer(answer)}" for direction, answer in ways.items())
    elif version.before is not None:
        yield f"* in the opset before: {_answer(version.before)}"
    if draft.previous is not None:
        yield ""
        found = classify(draft.previous, version)
        yield from (f"* {cell(each.change)} ({each.change_class})" for each in found)
    fact = version.removal or version.deprecation
    if fact is not None:
        yield f"* replaced by {fact.replaced_by}: {cell(fact.mapping)}"


def _parameter(side: str, formal: Parameter, version: OperatorVersion) -> tuple[str, ...]:
    types = ", ".join(each.removeprefix("tensor(").removesuffix(")") for each in version.types_of(formal))
    return (side, f"`{formal.name}`", f"{formal.type}: {types}", formal.option, "")


def _attribute(name: str, each: Attribute) -> tuple[str, ...]:
    default = "" if each.default is None else f"`{each.default}`"
    return ("attribute", f"`{name}`", each.type, "required" if each.required else "optional", default)


def _body(body: Body) -> Iterator[str]:
    yield ", ".join(f"{domain} {opset}" for domain, opset in body.opset_imports.items())
    yield from map(_node, body.nodes)


def _node(node: BodyNode) -> str:
    stated = ", ".join(f"{name}={_value(value)}" for name, value in node.attributes.items())
    attributes = f" <{stated}>" if stated else ""
    return f"{', '.join(node.outputs)} = {node.op_type}{attributes}({', '.join(node.inputs)})"


def _value(value: object) -> str:
    return f"@{value.attribute}" if isinstance(value, FromAttribute) else str(value)


def _answer(answer: Answer | str | None) -> str:
    if isinstance(answer, Refuse):
        return f"refused: {answer.refuse}"
    if isinstance(answer, tuple):
        return ", ".join(each.name for each in answer)
    return answer or "derived from the types"
