"""Count the refusals of a folder of models by cause, and name the codes that no model has.

    python tools/count_refusals.py FOLDER [--targets 7-28]

Every `*.onnx` file below FOLDER is planned for every target. The exit code is 1 if a refusal has a code that
`opsets/refusals.yaml` does not document.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import opshift
from hash_conversions import parse_targets
from opshift.registry.explanations import refusal_causes


def codes_of(path: Path, targets: Sequence[int]) -> Counter[str]:
    """Count the refused nodes and features of a model by code, over all targets."""
    counts: Counter[str] = Counter()
    data = path.read_bytes()
    for target in targets:
        try:
            counts.update(each.code for each in opshift.plan_version(data, target).refusals)
        except opshift.OpshiftError:  # not a refusal: the model is invalid
            continue
    return counts


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--targets", type=parse_targets, default=parse_targets("7-28"))
    options = parser.parse_args(arguments)
    counts: Counter[str] = Counter()
    models: Counter[str] = Counter()
    with ProcessPoolExecutor(2) as pool:
        work = partial(codes_of, targets=options.targets)
        for found in pool.map(work, sorted(options.folder.rglob("*.onnx")), chunksize=8):
            counts += found
            models.update(found.keys())
    print(f"{'refusals':>9} {'models':>7}  code")
    for code, count in counts.most_common():
        print(f"{count:>9,} {models[code]:>7,}  {code}")
    print("without refusals:", ", ".join(sorted(refusal_causes().keys() - counts.keys())) or "none")
    undocumented = sorted(counts.keys() - refusal_causes().keys())
    print("not documented:", ", ".join(undocumented) or "none")
    return 1 if undocumented else 0


if __name__ == "__main__":
    sys.exit(main())
