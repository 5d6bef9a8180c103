"""Write the file of a runtime from a table of operators that its project publishes.

    python tools/import_operator_tables.py tensorrt 10.1 operators.md --source URL --opsets 9 20
    python tools/import_operator_tables.py onnxruntime-webnn 1.30.0 webnn-operators.md --source URL

The runtime determines the format of the table. Notes about restrictions are printed: add them to the file
by hand, as conditions and in your own words. Existing files are not changed. Then run
tools/write_fingerprints.py.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from opshift.model.operator_ids import DEFAULT_DOMAIN
from opshift.registry.models import OperatorVersion
from opshift.registry.registry import default_registry
from runtime_files import INTERNAL, INTERNAL_DOMAINS, file_text, new_path, onnxruntime_facts, operator_rows

TYPE_NAMES: Final = {
    "BOOL": ["bool"], "DOUBLE": ["double"], "FP64": ["double"], "FP32": ["float"], "FP16": ["float16"],
    "BF16": ["bfloat16"], "FP8": ["float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz"],
    **{name.upper(): [name] for name in ("int4", "int8", "int16", "int32", "int64")},
    **{name.upper(): [name] for name in ("uint4", "uint8", "uint16", "uint32", "uint64")},
}  # fmt: skip
"""Element types by their names in tables."""

INDICES: Final = {"tensor(int32)", "tensor(int64)"}

DOMAINS: Final = (DEFAULT_DOMAIN, "ai.onnx.ml", "com.microsoft")
"""Domains of operators in tables without domains."""

ALL_OPSETS: Final = ((1, None),)


class Entry(NamedTuple):
    """Row of a table of operators."""

    operator: str
    """Name of the operator, without its domain if the table has no domains."""
    opsets: tuple[tuple[int, int | None], ...] = ALL_OPSETS
    """Ranges of opsets of models; `None` as the end means all later opsets."""
    types: frozenset[str] = frozenset()
    """Element types of all inputs and outputs; empty if the table has none."""
    note: str = ""
    """Text about restrictions."""


class Format(NamedTuple):
    """Format of a table, and facts about the runtime."""

    read: Callable[[str], Iterator[Entry]]
    facts: dict[str, Any] = {}
    """Keys of the file; empty for providers of onnxruntime."""
    types: str = ""
    """Element types that the device supports, for tables without types."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("runtime", choices=FORMATS)
    parser.add_argument("version")
    parser.add_argument("table", type=Path, help="copy of the page with the table")
    parser.add_argument("--source", required=True, help="address of the page")
    parser.add_argument("--opsets", type=int, nargs=2, help="first and last supported opset of ai.onnx")
    options = parser.parse_args(arguments)
    path = new_path(options.runtime, options.version)
    form = FORMATS[options.runtime]
    if form.facts:
        first, newest = options.opsets
        facts = {**form.facts, "opsets": _opsets_of_release(newest)}
    else:
        first, facts = 1, onnxruntime_facts(options.version, options.runtime.removeprefix("onnxruntime-"))
    device_types = frozenset(form.types.split())
    read = form.read(options.table.read_text("utf-8"))
    entries = [each._replace(types=each.types or device_types) for each in read]
    rows = operator_rows(listed_kernels(entries, first, facts["opsets"]))
    if form.facts:
        domains = {name.rpartition(".")[0] for name in rows}
        facts["opsets"] = {domain: opset for domain, opset in facts["opsets"].items() if domain in domains}
    text = file_text(options.runtime, options.version, facts, rows, ("documentation", options.source))
    path.write_text(text, "utf-8")
    print(f"wrote {path}")
    for entry in entries:
        if entry.note:
            print(f"{entry.operator}: {entry.note}")


def _opsets_of_release(newest: int) -> dict[str, int]:
    """Return the opsets of the first ONNX release with an opset, for the domains of tables."""
    release = default_registry().releases.first_release_with(DEFAULT_DOMAIN, newest)
    assert release is not None
    return {**{domain: release.opsets[domain] for domain in DOMAINS[:2]}, DOMAINS[2]: 1}


def listed_kernels(entries: Iterable[Entry], first: int, newest: Mapping[str, int]) -> Iterator[Any]:
    """Yield a kernel for each operator version that a runtime supports.

    A table without type variables lists types of all inputs and outputs: each type variable accepts those
    that the definition allows. A type variable accepts all if it allows none of them, or only indices.

    Args:
        entries: rows of a table.
        first: first supported opset of the default domain.
        newest: last supported opset of each domain.
    """
    for entry in entries:
        domain, name, versions = _operator_of_name(entry.operator)
        if not versions:
            yield domain, name, (1, 1), {}
            continue
        last = newest.get(domain, 1)
        # Tables have opsets of the default domain only; operators of other domains count for all opsets of
        # their domain.
        spans = [(1, last)]
        if domain == DEFAULT_DOMAIN:
            spans = [(max(low, first), min(high or last, last)) for low, high in entry.opsets]
        following = [each.since_version for each in versions[1:]] + [last + 1]
        for version, end in zip(versions, following, strict=True):
            is_last = end > last
            if any(version.since_version <= high and low < end for low, high in spans):
                span = version.since_version, version.since_version if is_last else end - 1
                yield domain, name, span, _types_of_entry(entry.types, version)


def _operator_of_name(operator: str) -> tuple[str, str, list[OperatorVersion]]:
    """Return the domain, the name and the versions of an operator that a table names."""
    registry = default_registry()
    given, _, name = operator.rpartition(":")
    for domain in [given] if given else DOMAINS:
        spelled = next((each for each in registry.names(domain) if each.lower() == name.lower()), None)
        found = registry.operator(spelled, domain) if spelled else None
        if found:
            return domain, found.name, [each for each in found.versions if not each.deprecated]
    return given or "com.microsoft", name, []


def _types_of_entry(listed: frozenset[str], version: OperatorVersion) -> dict[str, list[str]]:
    """Return, for each type variable, the listed types that it allows; none for variables of indices."""
    tensors = {f"tensor({each})" for each in listed}
    constrained = {
        name: set(types) for name, types in version.type_constraints.items() if set(types) - INDICES
    }
    return {name: sorted(tensors & types) for name, types in constrained.items() if tensors & types}


def _table_cells(page: str) -> Iterator[list[str]]:
    """Yield the cells of each row of Markdown tables."""
    for line in page.splitlines():
        if line.startswith("|"):
            yield [each.strip() for each in line.strip().removeprefix("|").removesuffix("|").split("|")]


def _type_names(text: str) -> frozenset[str]:
    # One table of TensorRT has INF64 instead of INT64; other tables have "Any", which leaves the types open.
    names = re.findall(r"\w+", text.replace("INF64", "INT64"))
    return frozenset(each for name in names for each in TYPE_NAMES.get(name, ()))


def read_tensorrt(page: str) -> Iterator[Entry]:
    """Yield the rows of docs/operators.md of onnx-tensorrt: operator, Y or N, types, restrictions."""
    for name, supported, *rest in _table_cells(page):
        types, note = [*rest, "", ""][:2]
        if supported.startswith("Y"):
            yield Entry(name, types=_type_names(types), note=note)


def read_migraphx(page: str) -> Iterator[Entry]:
    """Yield the rows of onnx_operators.rst of MIGraphX: a grid table with rows of several lines."""
    for row in re.split(r"^\+[-=+]+\+$", page, flags=re.MULTILINE):
        lines = list(_table_cells(row))
        if len(lines[0] if lines else ()) == 4 and lines[0][1] == "✅":
            names, _, types, notes = zip(*lines, strict=True)
            # A long name continues on the next line, and `(deprecated)` may follow it.
            yield Entry(
                "".join(names).partition("(")[0].strip(),
                types=_type_names(" ".join(types)),
                note=" ".join(notes).strip(),
            )


def read_onnx_mlir(page: str) -> Iterator[Entry]:
    """Yield the rows of SupportedONNXOps-cpu.md of onnx-mlir: operator, opsets, limitations."""
    for name, opsets, note, *_ in _table_cells(page):
        if numbers := re.findall(r"\d+", opsets):
            high = int(numbers[1]) if len(numbers) > 1 else None
            yield Entry(name.strip("*"), ((int(numbers[0]), high),), note=note)


def read_web(page: str, *, open_ended: bool) -> Iterator[Entry]:
    """Yield the rows of a table of onnxruntime-web: operator, `ai.onnx(7-12, 13+)`, notes.

    `13+` are all later opsets if ranges are open-ended, and otherwise exactly operator version 13.
    """
    for name, opsets, *_, note in _table_cells(page):
        for domain, ranges in re.findall(r"([\w.]+)\(([^)]+)\)", opsets):
            spans = tuple(_opset_range(each, open_ended=open_ended) for each in ranges.split(","))
            if domain not in INTERNAL_DOMAINS and name not in INTERNAL:
                yield Entry(f"{domain}:{name}", spans, note=note)


def _opset_range(text: str, *, open_ended: bool) -> tuple[int, int | None]:
    numbers = [int(each) for each in re.findall(r"\d+", text)]
    return numbers[0], None if open_ended and text.endswith("+") else numbers[-1]


def read_mobile(page: str) -> Iterator[Entry]:
    """Yield the rows of a table for CoreML or NNAPI in the wheels of onnxruntime: `ai.onnx:Add`, notes."""
    for name, note in _table_cells(page):
        if found := re.fullmatch(r"(ai\.onnx|com\.microsoft)[:.](\w+)", name):
            yield Entry(f"{found[1]}:{found[2]}", note=note)


FORMATS: Final = {
    "tensorrt": Format(
        read_tensorrt, {"provider": "cuda", "expands_functions": False, "computes_in": {"double": "float"}}
    ),
    "migraphx": Format(read_migraphx, {"provider": "rocm", "expands_functions": False}),
    # float16 requires certain processors
    "onnx-mlir": Format(
        read_onnx_mlir,
        {"provider": "cpu", "expands_functions": False},
        "bool double float int8 int16 int32 int64 string uint8 uint16 uint32 uint64",
    ),
    # Types of operands in https://www.w3.org/TR/webnn/; onnxruntime passes bool as uint8.
    "onnxruntime-webnn": Format(
        lambda page: read_web(page, open_ended=True),
        types="bool float float16 int4 int8 int32 int64 uint4 uint8 uint32 uint64",
    ),
    # The types of the other providers are those that their sources name.
    "onnxruntime-webgpu": Format(
        lambda page: read_web(page, open_ended=False), types="float float16 int32 uint32"
    ),
    "onnxruntime-coreml": Format(read_mobile, types="bool float float16 int32 int64"),
    "onnxruntime-coreml-nn": Format(read_mobile, types="float int32 int64"),
    "onnxruntime-nnapi": Format(read_mobile, types="bool float int8 int32 uint8"),
}


if __name__ == "__main__":
    main()
