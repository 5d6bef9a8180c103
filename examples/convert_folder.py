"""Convert all models of a folder; a model that cannot be converted does not stop the others.

python examples/convert_folder.py tests/golden converted 17
"""

from __future__ import annotations

import sys
from pathlib import Path

import opshift


def main(source: str, output: str, target: str) -> int:
    """Convert `source/**/*.onnx` into the folder `output`; return the number of failures."""
    failures = 0
    for path in sorted(Path(source).rglob("*.onnx")):
        result = Path(output) / path.relative_to(source)
        result.parent.mkdir(parents=True, exist_ok=True)
        try:
            # From file to file: large weights are not read into memory.
            opshift.convert_file(path, result, target)
        except opshift.OpshiftError as error:
            failures += 1
            print(f"{path}: {error}")
        else:
            print(f"{path} -> {result}")
    return failures


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    sys.exit(min(main(*sys.argv[1:]), 1))
