"""Operators that were removed from ONNX."""

from __future__ import annotations

from collections.abc import Iterator

from support.nodes.row import IMAGE, Row, X, row


def rows() -> Iterator[Row]:
    yield row("Affine", 1, {"x": X}, {"alpha": 2.0, "beta": 1.0})
    yield row("Crop", 1, {"x": IMAGE}, {"border": [1, 0, 2, 1]})
    yield row("ImageScaler", 1, {"x": IMAGE}, {"scale": 2.0, "bias": [1.0, -1.0]})
    yield row("ParametricSoftplus", 1, {"x": X}, {"alpha": 2.0, "beta": 0.5})
    yield row("Scale", 1, {"x": X}, {"scale": 3.0})
    yield row("ScaledTanh", 1, {"x": X}, {"alpha": 2.0, "beta": 0.5})
    yield row("ATen", 1, {"x": X}, {"operator": "cumsum"})
    yield row("GRUUnit", 1, {"p": X[None], "h": X[None], "b": X[0], "n": X[0]})
