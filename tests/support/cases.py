"""Single-node models for operator versions: custom ones, and the test cases that ONNX publishes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx
from onnx import numpy_helper

from opshift.registry.models import OperatorVersion
from support.domains import wire
from support.nodes import nodes
from support.published import Case, published
from support.released import is_later

MAX_IR_VERSION = 10
"""Runtimes that support an old opset may not support the newest IR versions."""


def own_cases(version: OperatorVersion, opset: int, to: int) -> Iterator[Case]:
    """Yield the custom cases of a version at one of its opsets for the step to a target version."""
    for row in nodes().get((version.domain, version.name, version.since_version), ()):
        if row.to in (None, to):
            yield _at_opset(row.case, wire(version.domain), opset)


def published_cases(version: OperatorVersion, opset: int) -> Iterator[Case]:
    """Yield ONNX's cases that fit a version, then again with all inputs but the first as constants."""
    domain = wire(version.domain)
    moved = [
        _at_opset(case, domain, opset)
        for case in published().get((domain, version.name), ())
        if _fits(case, version)
    ]
    valid = [case for case in moved if _is_valid(case.model)]
    yield from valid
    for case in valid:
        if len(case.feeds) > 1 and all(isinstance(each, np.ndarray) for each in case.feeds.values()):
            yield _with_constants(case)


def _fits(case: Case, version: OperatorVersion) -> bool:
    """Return whether the version has all attributes, inputs and outputs of the node."""
    node = case.model.graph.node[0]
    return (
        {each.name for each in node.attribute} <= set(version.attributes)
        and len(node.input) <= version.max_input
        and len(node.output) <= version.max_output
    )


def _is_valid(model: onnx.ModelProto) -> bool:
    """Return whether a model is valid at its opset; other nodes of a subgraph may have a newer form."""
    if is_later(model):
        return True
    try:
        onnx.checker.check_model(model, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError):
        return False
    return True


def _at_opset(case: Case, domain: str, opset: int) -> Case:
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    model.ir_version = min(model.ir_version, MAX_IR_VERSION)
    for each in model.opset_import:
        if each.domain == domain:
            each.version = opset
    return case._replace(model=model)


def _with_constants(case: Case) -> Case:
    first, *rest = case.feeds
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    graph = model.graph
    graph.initializer.extend(numpy_helper.from_array(case.feeds[name], name) for name in rest)
    del graph.input[1:]
    return case._replace(model=model, feeds={first: case.feeds[first]})
