"""What a message must have before it can be converted at all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from opshift.converter.errors import InvalidModel
from opshift.registry.names import canonical_domain

DEEPEST = 64
"""How many graphs may lie within each other; protobuf itself reads fewer than that from bytes."""


def check_structure(model: Any) -> None:
    """Check that a model has a graph and opsets, and that every value is made once, before it is read.

    Raises:
        InvalidModel: it has not.
    """
    if not model.HasField("graph"):
        raise InvalidModel(
            "this is not a model: it has no graph", remedy="check that the file is the right one"
        )
    opset_imports(model.opset_import, model.ir_version)
    _check_graph(model.graph, set(), "graph", 0)
    for function in model.functions:
        where = f"function {function.domain or 'ai.onnx'}.{function.name}"
        _check_nodes(function, set(function.input), where, 0)


def opset_imports(imports: Any, ir_version: int = 3) -> dict[str, int]:
    """Domain, as the registry spells it, to opset version.

    Raises:
        InvalidModel: a domain is imported with two versions, or a model of IR version 3 has no imports.
    """
    found: dict[str, int] = {}
    for each in imports:
        domain = canonical_domain(each.domain)
        if found.setdefault(domain, each.version) != each.version:
            raise InvalidModel(
                f"domain {domain} is imported twice, as opset {found[domain]} and {each.version}",
                remedy="keep the import that the nodes were written for",
            )
    if found:
        return found
    if ir_version >= 3:
        raise InvalidModel(
            "the model has no opset import",
            remedy="add one for each domain its nodes use, such as ai.onnx 17",
        )
    return {"ai.onnx": 1}


def _check_graph(graph: Any, outer: set[str], where: str, depth: int) -> None:
    if depth > DEEPEST:
        raise InvalidModel(f"graphs lie more than {DEEPEST} deep within each other", place=where)
    known = set(outer) if outer else set()
    known.update(value.name for value in graph.input)
    known.update(value.name for value in graph.initializer)
    known.update(value.values.name for value in graph.sparse_initializer)
    _check_nodes(graph, known, where, depth)
    for value in graph.output:
        if value.name not in known:
            raise InvalidModel(f"output {value.name!r} is made by no node", place=where)


def _check_nodes(container: Any, known: set[str], where: str, depth: int) -> None:
    known.add("")
    made: set[str] = set()
    for node in container.node:
        for name in node.input:
            if name not in known:
                raise _unmade(name, node, container, where)
        if node.attribute and _may_hold_graphs(node):
            for graph, attribute in _graphs(node):
                _check_graph(graph, known, f"{where} / {node.name or node.op_type}.{attribute}", depth + 1)
        for name in node.output:
            if name in made:
                raise InvalidModel(f"value {name!r} is made twice", place=f"{where}, node {_label(node)}")
            if name:
                made.add(name)
                known.add(name)


def _may_hold_graphs(node: Any) -> bool:
    return any(attribute.type in (0, 5, 10) for attribute in node.attribute)


def _graphs(node: Any) -> Iterator[tuple[Any, str]]:
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g, attribute.name
        for graph in attribute.graphs:
            yield graph, attribute.name


def _unmade(name: str, node: Any, container: Any, where: str) -> InvalidModel:
    place = f"{where}, node {_label(node)}"
    if any(name in other.output for other in container.node):
        return InvalidModel(
            f"input {name!r} is made by a node further down: the nodes are not in order, or form a cycle",
            place=place,
            remedy="sort the nodes topologically",
        )
    return InvalidModel(f"input {name!r} is made by no node, input or initializer", place=place)


def _label(node: Any) -> str:
    return repr(node.name) if node.name else f"{node.op_type} -> {', '.join(node.output)}"
