"""Export a PyTorch module, and convert the program to opset 13.

python examples/export_from_torch.py classifier.onnx
"""

from __future__ import annotations

import sys

import opshift


def main(output: str) -> None:
    """Write a small classifier with opset 13 to the file `output`."""
    try:
        import onnxscript  # noqa: F401  # the exporter needs it
        import torch
    except ImportError:
        print("skipped: pip install torch onnxscript")
        return
    module = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.GELU(), torch.nn.Linear(8, 3))

    program = torch.onnx.export(module.eval(), (torch.zeros(2, 4),), dynamo=True)
    program = opshift.convert_version(program, 13)  # its weights are not copied
    program.save(output)

    print(f"{output}: opset {program.model.opset_imports['']}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(*sys.argv[1:])
