"""Write the files of runtimes in `opsets/runtimes/` from listed kernels, for the tools that import them."""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import combinations
from pathlib import Path
from typing import Any, Final

from import_onnx import cover_with_sets, flow
from opshift.model.operator_ids import canonical_domain
from opshift.model.types import short_type
from opshift.registry.record import from_plain_data
from opshift.registry.registry import default_registry
from opshift.registry.releases import version_numbers
from opshift.registry.runtimes.files import RUNTIMES, get_runtime, runtime_files
from opshift.registry.runtimes.runtime import Kernel, Runtime

HEADER: Final = "# yaml-language-server: $schema=../../schema-runtime.json\n"

ANY_LATER_VERSION: Final = 2**31 - 1
"""End of the range of a kernel that implements only the version at its start: onnxruntime requires it."""

INTERNAL: Final = ("MemcpyFromHost", "MemcpyToHost")
"""Operators that onnxruntime itself inserts, like those of `INTERNAL_DOMAINS`."""

INTERNAL_DOMAINS: Final = ("com.microsoft.nchwc", "com.ms.internal.nhwc", "com.microsoft.dml")

Box = dict[str, frozenset[str]]
"""Types by type variable: a kernel accepts their product."""

Rows = dict[str, list[dict[str, Any]]]
"""Kernels, restrictions or wrong results by operator, as in a file."""


def new_path(runtime: str, version: str) -> Path:
    """Return the path of the file of a runtime, whose folder exists; refuse an existing file."""
    runtime_files.cache_clear()
    path = RUNTIMES / runtime / f"{version}.yaml"
    if path.exists():
        sys.exit(f"{path} exists: files of runtimes do not change")
    path.parent.mkdir(exist_ok=True)
    return path


def onnxruntime_facts(version: str, provider: str) -> dict[str, Any]:
    """Return the facts about a release of onnxruntime besides the kernels of a provider."""
    release = default_registry().releases.named(f"onnxruntime-{version}")
    opsets = {**release.opsets, "com.microsoft": 1}
    facts = {"opsets": opsets, "ir_version": release.ir_version, "expands_functions": True}
    if provider == "cpu":
        # onnxruntime inserts Cast nodes around nodes without a float16 kernel
        return {**facts, "computes_in": {"float16": "float"}}
    return {"provider": provider, **facts, "falls_back": f"onnxruntime-{version}"}


def file_text(
    runtime: str,
    version: str,
    facts: Mapping[str, Any],
    operators: Rows,
    evidence: tuple[str, str],
    *,
    is_complete: bool = True,
    restrictions: Rows | None = None,
    wrong: Rows | None = None,
) -> str:
    """Return the content of a file: what differs from the file of the nearest release.

    Args:
        runtime: name of the runtime.
        version: its version.
        facts: keys of the file other than `operators`.
        operators: kernels of all operators.
        evidence: kind and source of the facts.
        is_complete: whether the source lists combinations of types, and kernels without type variables.
            Otherwise, those of the nearest release remain, unless the types of an operator version differ.
        restrictions: nodes that kernels refuse.
        wrong: nodes with wrong results, by operator version.
    """
    content: dict[str, Any] = {"runtime": runtime, "version": version}
    base = _nearest_runtime(runtime, version)
    if base:
        content["extends"] = base.name
        facts = {key: value for key, value in facts.items() if getattr(base, key) != value}
        compared = tuple if is_complete else _all_types
        kernels = from_plain_data(dict[str, tuple[Kernel, ...]], operators)
        changed = {
            name: rows
            for name, rows in operators.items()
            if compared(base.operators.get(name, ())) != compared(kernels[name])
        }
        removed = [
            name
            for name, old in base.operators.items()
            if name not in operators and (is_complete or any(each.types for each in old))
        ]
        operators = {**changed, **{name: [] for name in removed}}
    kind, source = evidence
    date = f"{datetime.now(UTC):%Y-%m-%d}"
    content |= {**facts, "evidence": {"kind": kind, "source": source, "date": date}}
    lines = [f"{key}: {flow(value)}" for key, value in content.items()]
    lines += _section_lines("operators", dict(sorted(operators.items())))
    for key, entries in {"restrictions": restrictions, "wrong": wrong}.items():
        lines += _section_lines(key, entries) if entries else ()
    return HEADER + "\n".join(lines) + "\n"


def _section_lines(key: str, entries: Rows) -> Iterator[str]:
    yield f"{key}:" if entries else f"{key}: {{}}"
    for name, rows in entries.items():
        yield f"  {name}:" if rows else f"  {name}: []"
        yield from (f"  - {flow(row)}" for row in rows)


def _nearest_runtime(runtime: str, version: str) -> Runtime | None:
    """Return the newest older version with a file, or the oldest newer one."""
    names = [name for name, path in runtime_files().items() if path.parent.name == runtime]
    own = version_numbers(version)
    older = [each for each in names if version_numbers(each.rpartition("-")[2]) < own]
    nearest = older[-1:] or names[:1]
    return get_runtime(nearest[0]) if nearest else None


def _all_types(kernels: Sequence[Kernel]) -> set[tuple[int, str, str]]:
    """Return the types of each operator version and type variable."""
    return {
        (version, variable, each)
        for kernel in kernels
        for version in range(kernel.versions[0], kernel.versions[1] + 1)
        for variable, types in {"": ("",), **kernel.types}.items()
        for each in types
    }


def onnxruntime_rows(listed: Iterable[Any], opset: int) -> Rows:
    """Return the rows of each operator of onnxruntime, given the listed kernels and the newest opset."""
    kernels = [each for each in listed if each[0] not in INTERNAL_DOMAINS and each[1] not in INTERNAL]
    # onnxruntime makes initializers of Constant nodes, so no kernel is listed
    return operator_rows([*kernels, ("", "Constant", (1, opset), {})])


def operator_rows(listed: Iterable[Any]) -> Rows:
    """Return the rows of each operator, given domains, names, ranges of versions and types of kernels."""
    boxes: dict[str, dict[tuple[int, int], list[Box]]] = defaultdict(lambda: defaultdict(list))
    for domain, name, (first, last), types in listed:
        span = (first, first if last == ANY_LATER_VERSION else last)
        box = {variable: frozenset(map(_onnx_type, accepted)) for variable, accepted in types.items()}
        boxes[f"{canonical_domain(domain)}.{name}"][span].append(box)
    return {name: _rows_of_operator(name, found) for name, found in sorted(boxes.items())}


def _onnx_type(text: str) -> str:
    """Return a type in the spelling of ONNX: onnxruntime lists `map(int64,tensor(float))`."""
    return re.sub(r"map\((\w+),tensor\((\w+)\)\)", r"map(\1, \2)", text)


def _rows_of_operator(name: str, boxes: Mapping[tuple[int, int], list[Box]]) -> list[dict[str, Any]]:
    """Return the rows of an operator: equal boxes of adjacent ranges of versions share a row."""
    spans: list[tuple[int, int, Box]] = []
    for (first, last), found in sorted(boxes.items()):
        for box in _merged_boxes(found):
            before = next((each for each in spans if each[1:] == (first - 1, box)), None)
            if before:
                spans.remove(before)
            spans.append((before[0] if before else first, last, box))
    rows = []
    for first, last, box in sorted(spans, key=lambda each: each[:2]):
        row: dict[str, Any] = {"versions": [first, last]}
        if box:
            row["types"] = {variable: _types_with_sets(types) for variable, types in sorted(box.items())}
        if not _is_standard(name, first, last):
            row["nonstandard"] = True
        rows.append(row)
    return rows


def _merged_boxes(boxes: Sequence[Box]) -> list[Box]:
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
                return _merged_boxes(left)
    return left


def _types_with_sets(types: frozenset[str]) -> list[str]:
    """Return types as a file lists them: the sets that they consist of, then the others."""
    sets = default_registry().types
    wrapped = {each for each in types if each.startswith(("seq(", "optional("))}
    found = [short_type(each) for each in cover_with_sets(types - wrapped, sets)]
    for wrapper in "seq", "optional":
        inner = (each[len(wrapper) + 1 : -1] for each in wrapped if each.startswith(f"{wrapper}("))
        found += [f"{wrapper}({each})" for each in cover_with_sets(frozenset(inner), sets)]
    return found


def _is_standard(name: str, first: int, last: int) -> bool:
    """Return whether an operator has a version in a range, or may lack a definition."""
    domain, _, op_type = name.rpartition(".")
    registry = default_registry()
    operator = registry.operator(op_type, domain)
    if operator is None:
        return registry.is_open(domain)
    return any(first <= each.since_version <= last for each in operator.versions)
