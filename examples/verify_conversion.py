"""Convert a model, run both models on the same inputs, and compare the outputs.

pip install 'opshift[verify]'
python examples/verify_conversion.py tests/golden/segmenter-9.onnx 17
"""

from __future__ import annotations

import sys

import opshift


def main(source: str, target: str) -> None:
    """Print the largest difference of each output; raise `VerificationFailed` if the outputs differ."""
    converted = opshift.convert_version(source, target)
    result = opshift.verify(source, converted)
    print(f"{result.samples} samples, {result.runtimes[0]} and {result.runtimes[1]}")
    for output in result.outputs:
        print(f"{output.name}: {output.count} elements, largest difference {output.absolute}")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
