"""Models of one node for every operator version: the tests' own, and those that ONNX publishes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx
from onnx import numpy_helper

from opshift.registry.models import OperatorVersion
from support.domains import wire
from support.nodes import nodes
from support.published import Case, published

NEWEST_IR_VERSION = 10
"""Runtimes that know an old opset need not know the newest files."""


def own_cases(version: OperatorVersion, opset: int, to: int) -> Iterator[Case]:
    """The cases that the tests state for a version, at one of its opsets, and for where it goes to."""
    for row in nodes().get((version.domain, version.name, version.since_version), ()):
        if row.to in (None, to):
            yield _stamped(row.case, wire(version.domain), opset)


def published_cases(version: OperatorVersion, opset: int) -> Iterator[Case]:
    """ONNX's cases that fit a version, as they are, and then with all inputs but the first as constants."""
    domain = wire(version.domain)
    fitting = [case for case in published().get((domain, version.name), ()) if _fits(case, version)]
    for case in fitting:
        yield _stamped(case, domain, opset)
    for case in fitting:
        if len(case.feeds) > 1 and all(isinstance(each, np.ndarray) for each in case.feeds.values()):
            yield _with_constants(_stamped(case, domain, opset))


def _fits(case: Case, version: OperatorVersion) -> bool:
    """Whether the node has only what the version has."""
    node = case.model.graph.node[0]
    return (
        {each.name for each in node.attribute} <= set(version.attributes)
        and len(node.input) <= version.max_input
        and len(node.output) <= version.max_output
    )


def _stamped(case: Case, domain: str, opset: int) -> Case:
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    model.ir_version = min(model.ir_version, NEWEST_IR_VERSION)
    for each in model.opset_import:
        if each.domain == domain:
            each.version = opset
    return case._replace(model=model)


def _with_constants(case: Case) -> Case:
    first, *others = case.feeds
    graph = case.model.graph
    graph.initializer.extend(numpy_helper.from_array(case.feeds[name], name) for name in others)
    del graph.input[1:]
    return case._replace(feeds={first: case.feeds[first]})
