"""Nodes of a random model moved into functions of the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import onnx
from onnx import helper

DOMAIN = "local"


def function_of(name: str, node: onnx.NodeProto, opsets: Mapping[str, int]) -> onnx.FunctionProto:
    """Return a function with a copy of a node."""
    inner = onnx.NodeProto()
    inner.CopyFrom(node)
    inputs = _formal_names(inner.input, "a")
    outputs = _formal_names(inner.output, "r")
    _rename_values(inner.input, inputs)
    _rename_values(inner.output, outputs)
    imports = [helper.make_opsetid(domain, version) for domain, version in opsets.items()]
    return helper.make_function(DOMAIN, name, list(inputs.values()), list(outputs.values()), [inner], imports)


def call_of(function: onnx.FunctionProto, node: onnx.NodeProto) -> onnx.NodeProto:
    """Return the call that replaces the node of a function."""
    inputs, outputs = (list(dict.fromkeys(filter(None, names))) for names in (node.input, node.output))
    return helper.make_node(function.name, inputs, outputs, domain=DOMAIN)


def _formal_names(names: Sequence[str], hint: str) -> dict[str, str]:
    distinct = dict.fromkeys(filter(None, names))
    return {name: f"{hint}{position}" for position, name in enumerate(distinct)}


def _rename_values(names: Any, formal_names: Mapping[str, str]) -> None:
    for position, name in enumerate(names):
        if name:
            names[position] = formal_names[name]
