"""Training information, from IR version 7 on; inference does not read it."""

from __future__ import annotations

from collections.abc import Iterator

from opshift.converter.ir.contents import Contents
from opshift.converter.ir.use import Use

OBSTACLE = "it would be lost"
REMEDY = "let it go with allow='drop-training': inference does not need it"


def find(contents: Contents) -> Iterator[Use]:
    """Every TrainingInfoProto."""
    for index in range(len(contents.model.training_info)):
        yield Use("training", f"training_info[{index}]", OBSTACLE, REMEDY, "drop-training")


def drop(contents: Contents) -> None:
    """Take all of it out."""
    contents.model.ClearField("training_info")
    contents.graphs = [each for each in contents.graphs if not each.path.startswith("training_info[")]
