"""Convert a model with operators of a private domain, in both directions.

In the folder `acme/acme_operators`, `com.acme/Scale.yaml` defines an operator with two versions, and
`adapters/scale.py` converts between them. As an installed package, it needs neither of the two calls below.

python examples/private_domain.py
"""

from __future__ import annotations

from pathlib import Path

import onnx.parser
import onnx.printer

import opshift

ACME = Path(__file__).parent / "acme" / "acme_operators"
MODEL = """
<ir_version: 8, opset_import: ["" : 13, "com.acme" : 1]>
example (float[N] x) => (float[N] y) {
    scaled = com.acme.Scale <factor = 3.0> (x)
    y = Relu (scaled)
}
"""


def main() -> None:
    """Upgrade the model to version 2 of the domain, and downgrade it again."""
    opshift.load_adapters(ACME / "adapters")
    registry = opshift.default_registry().with_folder(ACME)

    upgraded = opshift.convert_version(onnx.parser.parse_model(MODEL), {"com.acme": 2}, registry=registry)
    print(onnx.printer.to_text(upgraded.graph))

    downgraded = opshift.convert_version(upgraded, {"com.acme": 1}, registry=registry)
    print(onnx.printer.to_text(downgraded.graph))


if __name__ == "__main__":
    main()
