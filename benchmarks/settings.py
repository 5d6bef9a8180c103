"""Settings of a benchmark run."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple


class Settings(NamedTuple):
    """Folder and extent of a run."""

    folder: Path
    """An empty folder for temporary files of several GB."""
    quick: bool = False
    """Whether to use fewer rounds and smaller models, and to skip slow conversions by ONNX's converter."""

    def rounds(self, count: int) -> int:
        """Return the number of rounds: `count`, or a quarter of it in a quick run."""
        return max(1, count // 4) if self.quick else count
