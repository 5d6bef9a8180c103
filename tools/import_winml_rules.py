"""Write the files of runtimes from the measurements in the wheel of winml-cli.

    python -m pip download --no-deps winml-cli==0.4.0 && python -m zipfile -e winml_cli-0.4.0-*.whl winml
    python tools/import_winml_rules.py 0.4.0 winml/winml/modelkit/analyze/rules/runtime_check_rules

Microsoft measured nodes with execution providers of onnxruntime on Windows: one table for each operator
version, with a row for each form of a node. The tool needs pyarrow. A kernel accepts the types with which
forms ran. A rank, an attribute value or a constant input is refused if no form with it ran. Tables of
quantized nodes and of patterns are not read. Existing files are not changed. Then run
tools/write_fingerprints.py.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

from opshift.model.element_types import BY_NAME
from opshift.registry.models import OperatorVersion
from opshift.registry.registry import default_registry
from runtime_files import file_text, new_path, onnxruntime_facts, operator_rows

RUNTIMES: Final = {
    "winml-qnn-gpu": "QNNExecutionProvider_GPU",
    "winml-qnn-npu": "QNNExecutionProvider_NPU",
    "winml-tensorrt-rtx": "NvTensorRTRTXExecutionProvider_GPU",
}
"""Folders with tables, by name of the runtime.

OpenVINO is missing, because restrictions explain too few forms: 66 % on the GPU, 80 % on the NPU.
"""

FALLBACK: Final = "1.24.4"
"""Release of onnxruntime on the CPU: the last one before 1.24.5, which winml-cli 0.4.0 requires."""

FLAGS: Final = (0, 1)
"""Integer attributes that select a mode; refusals of other integers often depend on the shape."""

FORMS: Final = {
    "absent": "must not be absent",
    "computed": "must be constant",
    "constant": "must not be constant",
}
"""Text of the requirement, by the form of an input with which nodes are refused."""

Row = Mapping[str, Any]
"""Values by column: types, ranks, kinds of inputs and attributes of a node."""


class Table(NamedTuple):
    """Measured forms of an operator version."""

    version: OperatorVersion
    rows: Sequence[tuple[Row, bool]]
    """Measured forms, each with whether it ran on the device."""


class Folded(NamedTuple):
    """Facts about an operator version that measurements show."""

    types: list[dict[str, str]]
    """Types with which a form ran, by type variable."""
    restrictions: list[dict[str, Any]]
    explained: int
    """Number of forms that ran, or whose refusal the types or restrictions explain."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("version", help="version of winml-cli")
    parser.add_argument("folder", type=Path, help="folder with a folder for each provider")
    options = parser.parse_args(arguments)
    for runtime, name in RUNTIMES.items():
        path = new_path(runtime, options.version)
        tables = read_tables(options.folder / name)
        text, explained, total = winml_file_text(runtime, options.version, tables)
        path.write_text(text, "utf-8")
        print(f"wrote {path}: it explains {explained} of {total} forms")


def read_tables(folder: Path) -> Iterator[Table]:
    """Yield the tables of a provider."""
    import pyarrow.parquet  # type: ignore[import-not-found,unused-ignore]

    for path in sorted(folder.glob("*.parquet")):
        found = re.fullmatch(r"(\w+?)_\w+Provider_[A-Z]+_([\w.]+)_opset(\d+)", path.stem)
        version = found and _version_of(found[2], found[1], int(found[3]))
        if version:
            columns = pyarrow.parquet.read_table(path).to_pydict()
            results = [all(each) for each in columns.pop("compile_run_success")]
            values = zip(
                *([_decoded_cell(each) for each in column] for column in columns.values()), strict=True
            )
            rows = [dict(zip(columns, each, strict=True)) for each in values]
            yield Table(version, list(zip(rows, results, strict=True)))


def _version_of(domain: str, name: str, since_version: int) -> OperatorVersion | None:
    operator = default_registry().operator(name, domain)
    versions = operator.versions if operator else ()
    return next((each for each in versions if each.since_version == since_version), None)


@cache
def _decoded_cell(text: str | None) -> Any:
    """Return the value of a cell, such as `{"t": "int", "v": 4}`."""
    value = json.loads(text).get("v") if text else None
    return value if isinstance(value, str | int | None) else str(value)


def fold(table: Table) -> Folded:
    """Return the facts about an operator version that its measured forms show."""
    variables = {f"{each}_{table.version.name}": each for each in table.version.type_constraints}

    def types_of(row: Row) -> dict[str, str]:
        names = {variables[column]: value.lower() for column, value in row.items() if column in variables}
        return {name: f"tensor({each})" for name, each in names.items() if each in BY_NAME}

    tested, ran_with_types = defaultdict(set), defaultdict(set)
    for row, ran in table.rows:
        types = frozenset(types_of(row).items())
        rank = next((value for column, value in row.items() if column.endswith("_dim")), None)
        tested[types].add(rank)
        if ran:
            ran_with_types[types].add(rank)
    # A type that ran with only one of many ranks indicates an error of the measurement.
    accepted = {types for types, ranks in ran_with_types.items() if len(ranks) > 1 or len(tested[types]) < 3}
    rows = [(row, ran) for row, ran in table.rows if frozenset(types_of(row).items()) in accepted]
    features = [(dict(_features_of_row(row, table.version)), ran) for row, ran in rows]
    ran_with = {item for found, ran in features if ran for item in found.items()}
    refused = {item for found, ran in features if not ran for item in found.items()} - ran_with
    left = [found for found, ran in features if not ran and not refused & set(found.items())]
    restrictions = list(_restrictions(refused))
    return Folded([dict(each) for each in accepted], restrictions, len(table.rows) - len(left))


Feature = tuple[str, str]
"""Kind and name of a feature: the rank or the form of a parameter, or the value of an attribute."""


def _features_of_row(row: Row, version: OperatorVersion) -> Iterator[tuple[Feature, Any]]:
    """Yield the features of a form that restrictions may depend on."""
    for each in (*version.inputs, *version.outputs):
        if row.get(f"{each.name}_dim") is not None:
            yield ("rank", each.name), row[f"{each.name}_dim"]
        is_given = not row.get(f"{each.name}_is_none", True)
        if is_given:
            yield ("form", each.name), "constant" if row.get(f"{each.name}_is_constant") else "computed"
        elif each.option == "optional":
            yield ("form", each.name), "absent"
    for name, attribute in version.attributes.items():
        value = attribute.default if row.get(f"attr_{name}_is_none", True) else row.get(f"attr_{name}")
        if value in FLAGS if isinstance(value, int) else attribute.values and isinstance(value, str):
            yield ("attribute", name), value


def _restrictions(refused: Iterable[tuple[Feature, Any]]) -> Iterator[dict[str, Any]]:
    """Yield a restriction for each feature with which no form ran."""
    values: dict[Feature, list[Any]] = defaultdict(list)
    for feature, value in sorted(refused, key=str):
        values[feature].append(value)
    for (kind, name), found in values.items():
        listed = " or ".join(map(str, found))
        if kind == "rank":
            yield {"reason": f"`{name}` must not have rank {listed}", "when": {"ranks": {name: found}}}
        elif kind == "attribute":
            reason = f"the attribute `{name}` must not be {listed}"
            yield {"reason": reason, "when": {"attributes": {name: found}}}
        elif {"constant", "computed"} <= set(found):
            yield {"reason": f"`{name}` must be absent", "when": {"present": [name]}}
        else:
            for form in found:
                yield {"reason": f"`{name}` {FORMS[form]}", "when": {form: [name]}}


def winml_file_text(runtime: str, version: str, tables: Iterable[Table]) -> tuple[str, int, int]:
    """Return the content of the file of a runtime, and the numbers of explained forms and of all forms."""
    kernels, explained, total = [], 0, 0
    restrictions: dict[str, dict[int, list[dict[str, Any]]]] = defaultdict(dict)
    for table in sorted(tables, key=lambda each: each.version.since_version):
        found = fold(table)
        explained, total = explained + found.explained, total + len(table.rows)
        domain, name, since = table.version.domain, table.version.name, table.version.since_version
        boxes = ({key: [each] for key, each in types.items()} for types in found.types)
        kernels += [(domain, name, (since, since), box) for box in boxes]
        if found.types:
            restrictions[f"{domain}.{name}"][since] = found.restrictions
    facts = onnxruntime_facts(FALLBACK, runtime.removeprefix("winml-"))
    merged = {
        name: rows
        for name, found in sorted(restrictions.items())
        if (rows := list(_merged_restrictions(found)))
    }
    evidence = ("measurement", f"https://pypi.org/project/winml-cli/{version}/")
    text = file_text(runtime, version, facts, operator_rows(kernels), evidence, restrictions=merged)
    return text, explained, total


def _merged_restrictions(restrictions: Mapping[int, Sequence[dict[str, Any]]]) -> Iterator[dict[str, Any]]:
    """Yield restrictions by version as rows; adjacent versions with equal restrictions share a row."""
    measured = list(restrictions)
    reasons = dict.fromkeys(each["reason"] for found in restrictions.values() for each in found)
    for reason in reasons:
        run: list[int] = []
        for version in [*measured, None]:
            found = restrictions[version] if version else ()
            row = next((each for each in found if each["reason"] == reason), None)
            if row and version:
                run, last = [*run, version], row
            elif run:
                yield last if run == measured else {"versions": [run[0], run[-1]], **last}
                run = []


if __name__ == "__main__":
    main()
