"""Nodes of a random model moved into functions of the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import onnx
from onnx import helper

DOMAIN = "local"


def function_of(name: str, node: onnx.NodeProto, opsets: Mapping[str, int]) -> onnx.FunctionProto:
    """A function that does what a node does."""
    inner = onnx.NodeProto()
    inner.CopyFrom(node)
    read = _formals(inner.input, "a")
    made = _formals(inner.output, "r")
    _rename(inner.input, read)
    _rename(inner.output, made)
    imports = [helper.make_opsetid(domain, version) for domain, version in opsets.items()]
    return helper.make_function(DOMAIN, name, list(read.values()), list(made.values()), [inner], imports)


def call_of(function: onnx.FunctionProto, node: onnx.NodeProto) -> onnx.NodeProto:
    """The node that takes the place of the one that the function was made of."""
    inputs, outputs = (list(dict.fromkeys(filter(None, names))) for names in (node.input, node.output))
    return helper.make_node(function.name, inputs, outputs, domain=DOMAIN)


def _formals(names: Sequence[str], hint: str) -> dict[str, str]:
    distinct = dict.fromkeys(filter(None, names))
    return {name: f"{hint}{position}" for position, name in enumerate(distinct)}


def _rename(names: Any, formals: Mapping[str, str]) -> None:
    for position, name in enumerate(names):
        if name:
            names[position] = formals[name]
