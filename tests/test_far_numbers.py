"""Nodes with one attribute or number of an input far out of range end within limits of time and memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from support.round_trips import cases_of

import opshift
from fuzzing.calls import Case as Call
from fuzzing.worker import Worker, is_finding
from opshift.registry.models import OperatorVersion

if TYPE_CHECKING:
    from support.published import Case

FAR = (-(2**63), -(2**31), -100_000, 100_000, 2**31 - 1, 2**62)


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    found = Worker()
    yield found
    found.close()


def _versions() -> list[OperatorVersion]:
    operators = opshift.default_registry().operators("ai.onnx")
    return [version for operator in operators for version in operator.versions]


def _cases(version: OperatorVersion) -> list[Case]:
    """Return a case with one node for each set of attributes, inputs and constants."""
    found: dict[str, Case] = {}
    for case in cases_of(version):
        node = case.model.graph.node[0]
        form = (
            sorted(each.name for each in node.attribute),
            len(node.input),
            len(case.model.graph.initializer),
        )
        found.setdefault(repr(form), case)
    return list(found.values())


def _with_attribute(case: Case, version: OperatorVersion) -> Iterator[onnx.ModelProto]:
    """Yield copies of a model, each with one integer attribute far out of range."""
    for name, attribute in version.attributes.items():
        for number in FAR if attribute.type in ("INT", "INTS") else ():
            copy = onnx.ModelProto()
            copy.CopyFrom(case.model)
            node = copy.graph.node[0]
            found = {each.name: each for each in node.attribute}.get(name) or node.attribute.add(name=name)
            values = number if attribute.type == "INT" else [number, *found.ints[1:]]
            found.CopyFrom(onnx.helper.make_attribute(name, values))
            yield copy


def _with_constant(case: Case) -> Iterator[onnx.ModelProto]:
    """Yield copies of a model, each with one number of a constant far out of range."""
    for position, tensor in enumerate(case.model.graph.initializer):
        array = numpy_helper.to_array(tensor)
        for number in FAR if array.dtype in (np.int32, np.int64) and array.size else ():
            copy = onnx.ModelProto()
            copy.CopyFrom(case.model)
            changed = array.copy()
            changed.flat[-1] = np.int64(number).astype(array.dtype)
            copy.graph.initializer[position].CopyFrom(numpy_helper.from_array(changed, tensor.name))
            yield copy


def _require_limits(worker: Worker, versions: list[OperatorVersion]) -> None:
    for version in versions:
        for case in _cases(version):
            for model in (*_with_attribute(case, version), *_with_constant(case)):
                found = worker.run(Call("convert", ".onnx", model.SerializeToString(), str(version.id)))
                assert not is_finding(found), f"{version.id}: {found.outcome} {found.details}"


def test_sample(worker: Worker) -> None:
    _require_limits(worker, _versions()[5::60])


@pytest.mark.full
@pytest.mark.parametrize("part", range(4))
def test_all_operators(part: int, worker: Worker) -> None:
    _require_limits(worker, _versions()[part::4])
