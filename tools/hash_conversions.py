"""Hash every conversion of a folder of models, to compare two versions of opshift.

    python tools/hash_conversions.py FOLDER [--targets 7-28] [--out results.jsonl] [--reversible]

Every `*.onnx` file below FOLDER is converted to every target. The output file holds one line for each model:
for each target a hash of the converted bytes and of the report without its wording, or the refused nodes and
operators. The hash of all lines is printed last. With `--reversible`, each result is also converted back.
"""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import json
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any

import opshift

Result = str | list[list[str]]
"""A hash, or the places and operators of the refused nodes."""


def digest(data: bytes) -> str:
    """Return the first 16 hexadecimal digits of a SHA-256 hash."""
    return hashlib.sha256(data).hexdigest()[:16]


def report_fields(report: Any) -> list[Any]:
    """Return the fields of a report, without sentences."""
    return [
        [list(dataclasses.astuple(change)) for change in report.opsets],
        list(report.ir_version),
        report.kept,
        [[node.place, node.operator, node.becomes, len(node.steps)] for node in report.changed],
        report.constants,
        len(report.ir_steps),
    ]


def convert(data: bytes, target: int, *, reversible: bool) -> Result:
    """Convert one model, and return a hash of the result, or the refused nodes."""
    try:
        message, report = opshift.convert(BytesIO(data), target, reversible=reversible)
        data = message.SerializeToString()
        fields = digest(json.dumps(report_fields(report)).encode())
        result = f"{digest(data)} {fields}"
        if reversible:
            own = report.opsets[0].source if report.opsets else target
            result += f" {digest(opshift.convert_version(data, own, reversible=True))}"
    except opshift.ConversionRefused as error:
        return sorted([refusal.place, refusal.operator] for refusal in error.refusals)
    except opshift.OpshiftError as error:
        return type(error).__name__
    return result


def convert_all(path: Path, targets: Sequence[int], *, reversible: bool) -> dict[int, Result]:
    """Convert a model to all targets."""
    data = path.read_bytes()
    return {target: convert(data, target, reversible=reversible) for target in targets}


def parse_targets(text: str) -> list[int]:
    """Parse `7-28` or `13,17`."""
    ranges = [part.partition("-") for part in text.split(",")]
    return [target for first, _, last in ranges for target in range(int(first), int(last or first) + 1)]


def main() -> int:
    """Run the command line and return its exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--targets", type=parse_targets, default=parse_targets("7-28"))
    parser.add_argument("--out", type=Path, help="a JSON Lines file with the results of each model")
    parser.add_argument("--reversible", action="store_true", help="convert reversibly, and back again")
    options = parser.parse_args()
    paths = sorted(options.folder.rglob("*.onnx"))
    if not paths:
        print(f"no .onnx files below {options.folder}", file=sys.stderr)
        return 2
    work = partial(convert_all, targets=options.targets, reversible=options.reversible)
    with ProcessPoolExecutor(2) as pool:
        results = pool.map(work, paths, chunksize=8)
        lines = [
            json.dumps({"model": str(path.relative_to(options.folder)), **each})
            for path, each in zip(paths, results, strict=True)
        ]
    if options.out:
        options.out.write_text("".join(f"{line}\n" for line in lines))
    print(
        len(lines),
        "models,",
        len(lines) * len(options.targets),
        "conversions:",
        digest("\n".join(lines).encode()),
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
