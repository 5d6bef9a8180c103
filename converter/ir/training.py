"""Training information (IR version 7); inference does not use it."""

from __future__ import annotations

from collections.abc import Iterator

from opshift.converter.ir.contents import Contents
from opshift.converter.ir.use import Use

OBSTACLE = "it would be lost"
REMEDY = "drop it with allow='drop-training': inference does not use it"


def find(contents: Contents) -> Iterator[Use]:
    """Yield every TrainingInfoProto."""
    for index in range(len(contents.model.training_info)):
        yield Use("training", f"training_info[{index}]", OBSTACLE, REMEDY, "drop-training")


def drop(contents: Contents) -> None:
    """Remove all training information, also from the contents that later rewrites read."""
    contents.model.ClearField("training_info")
    contents.graphs = [graph for graph in contents.graphs if not graph.path.startswith("training_info[")]
