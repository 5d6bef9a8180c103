"""Calls of local functions, and the number of nodes that inlining them may give."""

from __future__ import annotations

from typing import NamedTuple

from opshift.inference.call_facts import MAX_CALL_DEPTH
from opshift.inference.scope import Scope
from opshift.model.errors import InvalidModel
from opshift.model.graphs import count_model_nodes
from opshift.model.messages import ModelProto

MIN_CALLED_NODES, CALLED_NODES_PER_NODE = 100_000, 8
"""Maximum number of nodes after inlining: the first number, plus the second for each node of the model.

The nodes multiply if calls pass different facts to large functions, or if functions make several calls.
"""


NODES_PER_GRAPH = 4
"""Number of nodes that count for each graph: its scope takes as much time as a few nodes."""


class FunctionCall(NamedTuple):
    """Call of a local function."""

    place: str
    domain: str
    """Canonical domain of the called function."""
    output_count: int
    """Number of outputs of the node, including omitted outputs (empty names)."""
    function_output_count: int


class CalledFunction(NamedTuple):
    """Scope of a call of a local function, outputs of the call, and scope of the function."""

    scope: Scope
    outputs: tuple[str, ...]
    body: Scope


def max_inlined_nodes(model: ModelProto) -> int:
    """Return the maximum number of nodes of a model after inlining; see `MIN_CALLED_NODES`."""
    return MIN_CALLED_NODES + CALLED_NODES_PER_NODE * (count_model_nodes(model) if model.functions else 0)


def limit_error(path: str, depth: int, max_nodes: int) -> InvalidModel:
    """Return the error about calls that are nested too deeply, or about functions with too many nodes."""
    reason = f"calls of functions are nested more than {MAX_CALL_DEPTH} deep"
    if depth <= MAX_CALL_DEPTH:
        reason = f"functions have more than {max_nodes:,} nodes, counted for each call that differs"
    return InvalidModel(reason, place=path, remedy="inline the functions")
