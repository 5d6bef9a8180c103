"""Examples with the outputs that the reference gave, to be run as tests ever after."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from opshift.converter.verification.arrays import Array, element_type_of
from opshift.proposals.evidence.cases import Case
from opshift.proposals.evidence.evidence import Evidence
from opshift.proposals.folder import read_examples
from opshift.proposals.models import Example


def recorded(evidence: Evidence) -> str:
    """A file of examples, a line each; those that were brought to other types are left out."""
    ran = [(each.case, each.outputs) for each in evidence.outcomes if each.outputs and not each.case.retyped]
    lines = [f"- {json.dumps(_example(case, outputs), allow_nan=False)}" for case, outputs in ran]
    return "\n".join(["# Written by `opshift proposal accept`.", "examples:", *lines, ""])


def recorded_examples(tree: Path) -> Iterator[tuple[str, str, Example]]:
    """The domain, the operator's name and each example of a tree's `cases/<domain>/<name>-<opset>.yaml`."""
    for path in sorted((tree / "cases").glob("*/*.yaml")):
        for example in read_examples(path):
            yield path.parent.name, path.stem.rpartition("-")[0], example


def _example(case: Case, outputs: tuple[Array | None, ...]) -> dict[str, Any]:
    return {
        "name": case.example.name,
        "version": case.version.since_version,
        "inputs": [_given(each) for each in case.inputs],
        "attributes": dict(case.attributes),
        "outputs": [_given(each) for each in outputs],
    }


def _given(array: Array | None) -> dict[str, Any] | None:
    if array is None:
        return None
    shape = {} if array.size else {"shape": list(array.shape)}
    return {"type": element_type_of(array), "values": _plain(array.tolist()), **shape}


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if isinstance(value, str | int | float | bool) else float(value)
