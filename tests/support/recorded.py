"""Test data that accepted proposals record in ONNX's layout, and the references that compute it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import onnx
from onnx import numpy_helper
from onnx.reference.op_run import OpRun

from opshift import default_registry
from opshift.model.operator_ids import DEFAULT_DOMAIN, model_domain
from opshift.opsets import OPSETS
from opshift.proposals.content.staged_registry import reference_file
from opshift.proposals.evidence.run import Reference, load_reference, run_reference
from opshift.registry.registry import Registry

CASES = OPSETS / "cases"


class RecordedCase(NamedTuple):
    """Model of one node, its inputs, and the outputs of the reference."""

    path: Path
    model: onnx.ModelProto
    feeds: dict[str, Any]
    outputs: list[Any]


def recorded_cases(folder: Path = CASES) -> Iterator[RecordedCase]:
    """Yield all cases in a folder `cases` of a tree of definitions."""
    for path in sorted(folder.glob("*/*/test_*")):
        model = onnx.load(path / "model.onnx")
        inputs, outputs = _tensors(path, "input"), _tensors(path, "output")
        names = [each.name for each in model.graph.input]
        yield RecordedCase(path, model, dict(zip(names, inputs, strict=True)), outputs)


def _tensors(path: Path, side: str) -> list[Any]:
    files = [path / "test_data_set_0" / f"{side}_{number}.pb" for number in range(100)]
    return [numpy_helper.to_array(onnx.load_tensor(each)) for each in files if each.exists()]


@cache
def recorded_operators(
    opset: int, registry: Registry | None = None, tree: Path = OPSETS
) -> tuple[type[OpRun], ...]:
    """Return the references for onnx.reference, of the operator versions in effect at an opset of ai.onnx."""
    if not (tree / "references").exists():
        return ()
    registry = registry or default_registry()
    opsets = {
        each: opset if each == DEFAULT_DOMAIN else registry.newest_opset(each) for each in registry.domains()
    }
    found = (operator.at(opsets[operator.domain]) for operator in registry.operators())
    with_reference = (each for each in found if each and reference_file(tree, each).exists())
    return tuple(
        _operator(Reference(each, load_reference(reference_file(tree, each)))) for each in with_reference
    )


def _operator(reference: Reference) -> type[OpRun]:
    def run(self: OpRun, *inputs: Any, **_attributes: Any) -> tuple[Any, ...]:
        given = {each.name: onnx.helper.get_attribute_value(each) for each in self.onnx_node.attribute}
        return tuple(run_reference(reference, inputs, given))

    members: dict[str, Callable[..., Any] | str | None] = {"op_schema": None, "_run": run}
    members["op_domain"] = model_domain(reference.version.domain)
    return type(reference.version.name, (OpRun,), members)
