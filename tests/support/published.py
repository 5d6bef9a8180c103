"""Single-node test cases of ONNX, without slow ones, and those of accepted proposals."""

from __future__ import annotations

import importlib
import pkgutil
import warnings
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import onnx
import onnx.backend.test.case.node as published_cases
from onnx import numpy_helper

from support.recorded import recorded_cases

SLOW = frozenset({"AveragePool", "LpPool", "MaxPool"})
"""Operators with expected outputs that take seconds to compute."""


class Case(NamedTuple):
    """A model with one node, and its inputs."""

    model: onnx.ModelProto
    feeds: Mapping[str, Any]


@cache
def published() -> Mapping[tuple[str, str], Sequence[Case]]:
    """Return the cases by domain (`""` is the default domain) and operator."""
    found: dict[tuple[str, str], list[Case]] = defaultdict(list)
    for each in _collect_cases():
        nodes = each.model.graph.node if each.model else []
        if len(nodes) == 1 and nodes[0].op_type not in SLOW:
            names = [value.name for value in each.model.graph.input]
            feeds = dict(zip(names, map(_to_feed, each.data_sets[0][0]), strict=False))
            found[nodes[0].domain, nodes[0].op_type].append(Case(each.model, feeds))
    for recorded in recorded_cases():
        (node,) = recorded.model.graph.node
        found[node.domain, node.op_type].append(Case(recorded.model, recorded.feeds))
    return found


def _collect_cases() -> Sequence[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for module in pkgutil.walk_packages(published_cases.__path__, f"{published_cases.__name__}."):
            if module.name.rpartition(".")[2] not in map(str.lower, SLOW):
                importlib.import_module(module.name)
    cases: Sequence[Any] = published_cases._NodeTestCases
    return cases


def _to_feed(value: Any) -> Any:
    if isinstance(value, onnx.TensorProto):
        return numpy_helper.to_array(value)
    return value if isinstance(value, list) or value is None else np.asarray(value)
