"""Transforms of signals that are short enough for sums to agree within rounding."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from support.nodes.row import IMAGE, Row, row


def rows() -> Iterator[Row]:
    signal = IMAGE[0, 0, :, :, None]
    yield row("DFT", 17, {"x": signal})
    yield row("DFT", 17, {"x": signal}, {"axis": 0, "onesided": 1})
    frames = {"x": IMAGE.reshape(1, 48, 1), "step": np.array(4), "window": np.hanning(8).astype(np.float32)}
    yield row("STFT", 17, frames, constants="step")
    sizes = {"bins": 3, "length": 16, "rate": 8000}
    feeds = {**sizes, "low": np.float32(0), "high": np.float32(4000)}
    yield row("MelWeightMatrix", 17, feeds, constants=" ".join(feeds))
