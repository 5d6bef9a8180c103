"""How much is measured, and where files go meanwhile."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple


class Settings(NamedTuple):
    """What the command was told."""

    folder: Path
    """A folder for files of several GB, empty."""
    quick: bool = False
    """Fewer rounds, smaller models, and nothing that takes ONNX's converter long."""

    def rounds(self, count: int) -> int:
        """How often each thing is measured, as a rule `count` times."""
        return max(1, count // 4) if self.quick else count
