"""Write the kernels of releases of onnxruntime for the CPU to `opsets/runtimes/onnxruntime/`.

    python tools/import_kernels.py 1.30.0 1.31.1

Each wheel is installed from PyPI into a temporary folder, and a separate process lists its kernels.
Releases before 1.16 cannot. A file contains the differences from the newest older release that has a file.
Existing files are not changed. Then run tools/write_fingerprints.py.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import combinations
from typing import Any, Final

from import_onnx import cover_with_sets, flow
from opshift.model.operator_ids import canonical_domain
from opshift.model.types import short_type
from opshift.registry.record import from_plain_data
from opshift.registry.registry import default_registry
from opshift.registry.runtimes.files import RUNTIMES, get_runtime, runtime_files, version_numbers
from opshift.registry.runtimes.runtime import Kernel, Runtime

HEADER: Final = "# yaml-language-server: $schema=../../schema-runtime.json\n"

LIST_KERNELS: Final = """
import json
from onnxruntime.capi import onnxruntime_pybind11_state as state
kernels = [each for each in state.get_all_opkernel_def() if each.provider == "CPUExecutionProvider"]
print(json.dumps([(k.domain, k.op_name, k.version_range, k.type_constraints) for k in kernels]))
"""

ANY_LATER_VERSION: Final = 2**31 - 1
"""End of the range of a kernel that implements only the version at its start: onnxruntime requires it."""

INTERNAL: Final = ("MemcpyFromHost", "MemcpyToHost")
"""Operators that onnxruntime itself inserts, like those of `INTERNAL_DOMAINS`."""

INTERNAL_DOMAINS: Final = ("com.microsoft.nchwc", "com.ms.internal.nhwc")

PROPERTIES: Final = {
    # onnxruntime inserts Cast nodes around nodes without a float16 kernel
    "computes_in": {"float16": "float"},
    "expands_functions": True,
}

NUMPY: Final = "numpy<2"
"""Releases before 1.19 need it, and newer ones accept it."""

Box = dict[str, frozenset[str]]
"""Types by type variable: a kernel accepts their product."""

Rows = dict[str, list[dict[str, Any]]]
"""Kernels by operator, as in a file."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return 1 if a file exists."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("versions", nargs="+", help="releases of onnxruntime")
    versions: list[str] = parser.parse_args(arguments).versions
    for version in sorted(versions, key=version_numbers):
        path = RUNTIMES / "onnxruntime" / f"{version}.yaml"
        if path.exists():
            print(f"{path} exists")
            return 1
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(file_text(version, installed_kernels(version)), "utf-8")
        print(f"wrote {path}")
    return 0


def installed_kernels(version: str) -> list[Any]:
    """Install a release into a temporary folder, and return its kernels."""
    with tempfile.TemporaryDirectory() as folder:
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", folder]
        subprocess.run([*pip, f"onnxruntime=={version}", NUMPY], check=True)
        return list_kernels({**os.environ, "PYTHONPATH": folder})


def list_kernels(environment: Mapping[str, str]) -> list[Any]:
    """Return the kernels of the onnxruntime that a new process with this environment imports."""
    command = [sys.executable, "-c", LIST_KERNELS]
    result = subprocess.run(command, check=True, env=environment, stdout=subprocess.PIPE)
    return list(json.loads(result.stdout))


def file_text(version: str, listed: Iterable[Any]) -> str:
    """Return the content of the file of a release."""
    release = default_registry().releases.named(f"onnxruntime-{version}")
    opsets = {**release.opsets, "com.microsoft": 1}
    operators = operator_rows(listed, opsets["ai.onnx"])
    content: dict[str, Any] = {"runtime": "onnxruntime", "version": version}
    facts = {"opsets": opsets, "ir_version": release.ir_version, **PROPERTIES}
    base = _older_runtime(version)
    if base:
        content["extends"] = base.name
        facts = {key: value for key, value in facts.items() if getattr(base, key) != value}
        kernels = from_plain_data(dict[str, tuple[Kernel, ...]], operators)
        changed = {
            name: rows for name, rows in operators.items() if base.operators.get(name) != kernels[name]
        }
        removed = [name for name, old in base.operators.items() if old and name not in operators]
        operators = {**changed, **{name: [] for name in removed}}
    date = f"{datetime.now(UTC):%Y-%m-%d}"
    source = f"https://pypi.org/project/onnxruntime/{version}/"
    content |= {**facts, "evidence": {"kind": "kernel_registry", "source": source, "date": date}}
    lines = [f"{key}: {flow(value)}" for key, value in content.items()]
    lines.append("operators:" if operators else "operators: {}")
    for name, rows in sorted(operators.items()):
        lines += [f"  {name}:", *(f"  - {flow(row)}" for row in rows)] if rows else [f"  {name}: []"]
    return HEADER + "\n".join(lines) + "\n"


def _older_runtime(version: str) -> Runtime | None:
    """Return the newest runtime with a file that is older than a version."""
    older = [
        name
        for name, path in runtime_files().items()
        if path.parent.name == "onnxruntime" and version_numbers(path.stem) < version_numbers(version)
    ]
    return get_runtime(older[-1]) if older else None


def operator_rows(listed: Iterable[Any], opset: int) -> Rows:
    """Return the rows of each operator, given the listed kernels and the newest opset."""
    boxes: dict[str, dict[tuple[int, int], list[Box]]] = defaultdict(lambda: defaultdict(list))
    for domain, name, (first, last), types in listed:
        if domain not in INTERNAL_DOMAINS and name not in INTERNAL:
            span = (first, first if last == ANY_LATER_VERSION else last)
            box = {variable: frozenset(map(_type, accepted)) for variable, accepted in types.items()}
            boxes[f"{canonical_domain(domain)}.{name}"][span].append(box)
    # onnxruntime makes initializers of Constant nodes, so no kernel is listed
    boxes["ai.onnx.Constant"][1, opset].append({})
    return {name: _rows(name, found) for name, found in sorted(boxes.items())}


def _type(text: str) -> str:
    """Return a type in the spelling of ONNX: onnxruntime lists `map(int64,tensor(float))`."""
    return re.sub(r"map\((\w+),tensor\((\w+)\)\)", r"map(\1, \2)", text)


def _rows(name: str, boxes: Mapping[tuple[int, int], list[Box]]) -> list[dict[str, Any]]:
    """Return the rows of an operator: equal boxes of adjacent ranges of versions share a row."""
    spans: list[tuple[int, int, Box]] = []
    for (first, last), found in sorted(boxes.items()):
        for box in _merged(found):
            before = next((each for each in spans if each[1:] == (first - 1, box)), None)
            if before:
                spans.remove(before)
            spans.append((before[0] if before else first, last, box))
    rows = []
    for first, last, box in sorted(spans, key=lambda each: each[:2]):
        row: dict[str, Any] = {"versions": [first, last]}
        if box:
            row["types"] = {variable: _named(types) for variable, types in sorted(box.items())}
        if not _is_standard(name, first, last):
            row["nonstandard"] = True
        rows.append(row)
    return rows


def _merged(boxes: Sequence[Box]) -> list[Box]:
    """Return boxes with the same combinations of types: two that differ in one variable become one."""
    left = list(boxes)
    for first, second in combinations(boxes, 2):
        if first in left and second in left and first.keys() == second.keys():
            differing = [each for each in first if first[each] != second[each]]
            if len(differing) <= 1:
                left.remove(first)
                if differing:
                    left.remove(second)
                    left.append({each: first[each] | second[each] for each in first})
                return _merged(left)
    return left


def _named(types: frozenset[str]) -> list[str]:
    """Return types as a file lists them: the sets that they consist of, then the others."""
    sets = default_registry().types
    wrapped = {each for each in types if each.startswith(("seq(", "optional("))}
    found = [short_type(each) for each in cover_with_sets(types - wrapped, sets)]
    for wrapper in "seq", "optional":
        inner = (each[len(wrapper) + 1 : -1] for each in wrapped if each.startswith(f"{wrapper}("))
        found += [f"{wrapper}({each})" for each in cover_with_sets(frozenset(inner), sets)]
    return found


def _is_standard(name: str, first: int, last: int) -> bool:
    """Return whether an operator has a version in a range, or is in a domain without definitions."""
    domain, _, op_type = name.rpartition(".")
    registry = default_registry()
    operator = registry.operator(op_type, domain)
    if operator is None:
        return not registry.has_domain(domain)
    return any(first <= each.since_version <= last for each in operator.versions)


if __name__ == "__main__":
    sys.exit(main())
