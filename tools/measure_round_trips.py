"""Expand nodes with a function body for older opsets, convert them back, and recognize the operator.

    python tools/measure_round_trips.py
    python tools/measure_round_trips.py --oldest Attention Gelu

The nodes are the test cases of ONNX and of this project with one node, for each version. They are expanded
for the nearest opset without the operator, or with `--oldest` for the oldest possible one, or into the
function body. The command prints how many nodes of each version come back with equal attributes, and the
sums without the operators with an expansion that does not determine a node.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "tests"))

from support.round_trips import UNRECOGNIZED, cases_of, function_versions, round_trip


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a row for each version, and the sums."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("operators", nargs="*", help="names of operators; by default all")
    parser.add_argument("--oldest", action="store_true", help="expand for the oldest possible opset")
    options = parser.parse_args(arguments)
    total: Counter[bool | None] = Counter()
    determined: Counter[bool | None] = Counter()
    count = 0
    for version in function_versions():
        if options.operators and version.name not in options.operators:
            continue
        results = Counter(round_trip(each, version, to_oldest=options.oldest) for each in cases_of(version))
        count += 1
        total += results
        if version.name not in UNRECOGNIZED:
            determined += results
        reason = UNRECOGNIZED.get(version.name, "")
        print(f"{version.id}: {_share(results)}{'; ' if reason else ''}{reason}", flush=True)
    print(f"{count} versions: {_share(total)}")
    print(f"without the operators with a reason: {_share(determined)}")
    return 0


def _share(results: Counter[bool | None]) -> str:
    """Return the share of recognized nodes among the nodes that other operators can express, as text."""
    expressed = results[True] + results[False]
    share = f" ({results[True] / expressed:.1%})" if expressed else ""
    return f"{results[True]:,} of {expressed:,}{share}"


if __name__ == "__main__":
    sys.exit(main())
