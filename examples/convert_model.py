"""Convert a model to another opset and print the changes.

python examples/convert_model.py tests/golden/segmenter-9.onnx segmenter-17.onnx 17
"""

from __future__ import annotations

import sys

import opshift


def main(source: str, output: str, target: str) -> None:
    """Convert the file `source` to `target` and write it to `output`."""
    model, report = opshift.convert(source, target)
    opshift.write_model(model, output)
    for change in report.opsets:
        print(f"{change.domain}: opset {change.source} -> {change.target}")
    for node in report.changed:
        print(f"{node.place}: {node.operator} -> {', '.join(node.becomes)}")
    print(f"{report.kept} nodes are unchanged")


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
