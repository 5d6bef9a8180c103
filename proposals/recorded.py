"""Examples of an accepted operator with the outputs of its reference, for use as regression tests."""

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
    """Return a file of examples with the outputs of the reference, one line per example.

    Cases that were derived for other element types are omitted.
    """
    cases = [
        (each.case, each.outputs) for each in evidence.outcomes if each.outputs and not each.case.retyped
    ]
    lines = [f"- {json.dumps(_example_data(case, outputs), allow_nan=False)}" for case, outputs in cases]
    return "\n".join(["# Written by `opshift proposal accept`.", "examples:", *lines, ""])


def recorded_examples(tree: Path) -> Iterator[tuple[str, str, Example]]:
    """Yield domain, operator name and example from `cases/<domain>/<name>-<opset>.yaml` of a tree."""
    for path in sorted((tree / "cases").glob("*/*.yaml")):
        for example in read_examples(path):
            yield path.parent.name, path.stem.rpartition("-")[0], example


def _example_data(case: Case, outputs: tuple[Array | None, ...]) -> dict[str, Any]:
    return {
        "name": case.example.name,
        "version": case.version.since_version,
        "inputs": [_array_data(each) for each in case.inputs],
        "attributes": dict(case.attributes),
        "outputs": [_array_data(each) for each in outputs],
    }


def _array_data(array: Array | None) -> dict[str, Any] | None:
    if array is None:
        return None
    shape = {} if array.size else {"shape": list(array.shape)}
    return {"type": element_type_of(array), "values": _plain_data(array.tolist()), **shape}


def _plain_data(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain_data(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)  # JSON has no nan and inf
    # Arrays of types that numpy lacks, such as bfloat16, contain scalars that json cannot encode.
    return value if isinstance(value, str | int | float | bool) else float(value)
