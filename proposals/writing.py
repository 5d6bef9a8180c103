"""Write several text files as one change."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from opshift.converter.streaming.replacing import Replacing, write_all, writing


def write_files(texts: Mapping[Path, str]) -> None:
    """Write all files, or leave all of them unchanged.

    Raises:
        CannotWrite: a file cannot be written.
    """
    with writing(next(iter(texts))), Replacing() as files:
        for path, text in texts.items():
            with files.new(path) as (file, _):
                write_all(file, text.encode())
