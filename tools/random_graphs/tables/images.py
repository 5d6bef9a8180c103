"""Resampling and regions."""

from __future__ import annotations

from typing import Any

from random_graphs.draft import Choice, Draft, TensorSpec
from random_graphs.tables.layout import some_axes
from random_graphs.values import Shape


def _resized_sizes(n: Draft) -> list[int]:
    """Return the sizes of the resized axes."""
    axes = some_axes(n) if n.since >= 18 else None
    return [n.shape[each] for each in axes] if axes is not None else list(n.shape)


def _size_source(n: Draft) -> str:
    found: str = n.fact("goal", lambda: n.one_of("scales", "sizes") if n.since >= 11 else "scales")
    return found


def _may_resize(n: Draft, index: int, rank: int) -> bool:
    """Return whether an axis may be resized; runtimes interpolate over the last two axes only."""
    return n.attribute("mode") in (None, "nearest") or index >= rank - 2


def scales(n: Draft) -> Any:
    """Draw the scales of a Resize; empty or omitted if `sizes` decides."""
    sizes = _resized_sizes(n)
    if _size_source(n) != "scales":
        return [] if n.since < 13 else n.one_of(None, None)
    return [
        n.one_of(1.0, 2.0, 1.5, 0.5, 0.75, 1.3) if _may_resize(n, index, len(sizes)) else 1.0
        for index in range(len(sizes))
    ]


def upsample_scales(n: Draft) -> list[float]:
    """Choose scales of at least 1, since Upsample does not shrink."""
    return [n.one_of(1.0, 2.0, 1.5) if _may_resize(n, index, n.rank) else 1.0 for index in range(n.rank)]


def sizes(n: Draft) -> Any:
    """Draw the sizes of the result of a Resize; omitted if `scales` decides."""
    found = _resized_sizes(n)
    if _size_source(n) != "sizes":
        return None
    return [n.number(1, 6) if _may_resize(n, index, len(found)) else size for index, size in enumerate(found)]


def roi(n: Draft) -> Any:
    """Draw the region of interest of a Resize, which only the mode `tf_crop_and_resize` reads."""
    if n.attribute("coordinate_transformation_mode") == "tf_crop_and_resize":
        count = len(_resized_sizes(n))
        return [0.0] * count + [n.one_of(0.75, 1.0) for _ in range(count)]
    return [] if n.since < 13 else n.one_of(None, None)


def resize_axes(n: Draft) -> Any:
    return some_axes(n)


def _spatial_rank(n: Draft) -> int:
    """Return the number of spatial dimensions of GridSample: before version 20, data have two of them."""
    rank: int = n.one_of(2, 2, 3)
    return rank if n.since >= 20 else 2


def _grid_shape(n: Draft) -> Shape:
    return (n.shape[0], *(n.number(1, 3) for _ in n.shape[2:]), n.rank - 2)


def boxes(n: Draft) -> Any:
    """Return boxes that overlap to different degrees."""
    corners = [[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, -0.1, 1, 0.9], [0, 10, 1, 11], [0, 10.1, 1, 11.1]]
    return [corners]


CHOICES: dict[str, Choice] = {
    "Resize.X": lambda n: TensorSpec(tuple(n.number(1, 4) for _ in range(n.one_of(1, 2, 4, 4)))),
    "Resize.scales": scales,
    "Resize.sizes": sizes,
    "Resize.roi": roi,
    "Resize.axes": resize_axes,
    "Resize.mode": lambda n: n.attribute("mode"),
    "Resize.coordinate_transformation_mode": lambda n: n.attribute("coordinate_transformation_mode"),
    "Upsample.X": lambda n: TensorSpec(tuple(n.number(1, 4) for _ in range(n.one_of(2, 4)))),
    "Upsample.scales": upsample_scales,
    "Upsample.mode": lambda n: n.attribute("mode"),
    "GridSample.X": lambda n: TensorSpec((n.number(1, 2), n.number(1, 2), *[3] * _spatial_rank(n))),
    "GridSample.grid": lambda n: TensorSpec(_grid_shape(n), "unit" if n.chance(50) else "any"),
    "AffineGrid.theta": lambda n: TensorSpec((2, *n.fact("dims", lambda: n.one_of((2, 3), (3, 4))))),
    "AffineGrid.size": lambda n: [2, 3, *(n.number(1, 3) for _ in range(n.facts["dims"][0]))],
    "MaxRoiPool.X": lambda n: TensorSpec((1, 2, 5, 5)),
    "MaxRoiPool.rois": lambda n: [[0, 0, 0, 3, 3], [0, 1, 1, 4, 4]],
    "MaxRoiPool.pooled_shape": lambda n: [2, 2],
    "RoiAlign.X": lambda n: TensorSpec((1, 2, 5, 5)),
    "RoiAlign.rois": lambda n: [[0, 0, 3, 3], [1, 0.5, 4.5, 4]],
    "RoiAlign.batch_indices": lambda n: [0, 0],
    "RoiAlign.output_height": lambda n: n.one_of(None, 2),
    "RoiAlign.output_width": lambda n: n.one_of(None, 2),
    "RoiAlign.sampling_ratio": lambda n: n.one_of(None, 2),
    "NonMaxSuppression.boxes": boxes,
    "NonMaxSuppression.scores": lambda n: [[[0.9, 0.75, 0.6, 0.95, 0.5], [0.1, 0.2, 0.3, 0.8, 0.7]]],
    "NonMaxSuppression.max_output_boxes_per_class": lambda n: n.one_of(None, [2], 3, [0]),
    "NonMaxSuppression.iou_threshold": lambda n: n.one_of(None, [0.5]),
    "NonMaxSuppression.score_threshold": lambda n: n.one_of(None, [0.4]),
    "Col2Im.input": lambda n: TensorSpec((1, 2 * 4, 4)),
    "Col2Im.image_shape": lambda n: [3, 3],
    "Col2Im.block_shape": lambda n: [2, 2],
    "Col2Im.dilations": lambda n: n.one_of(None, [1, 1]),
    "Col2Im.strides": lambda n: n.one_of(None, [1, 1]),
    "Col2Im.pads": lambda n: n.one_of(None, [0, 0, 0, 0]),
    "loss.input": lambda n: TensorSpec(n.one_of((3, 4), (2, 4, 3))),
    "loss.scores": lambda n: TensorSpec(n.one_of((3, 4), (2, 4, 3))),
    "loss.target": lambda n: n.graph.random.integers(0, 4, (n.shape[0], *n.shape[2:])),
    "loss.labels": lambda n: n.graph.random.integers(0, 4, (n.shape[0], *n.shape[2:])),
    "loss.weight": lambda n: n.one_of(None, TensorSpec((4,), "positive")),
    "loss.weights": lambda n: n.one_of(None, TensorSpec((4,), "positive")),
    "loss.ignore_index": lambda n: n.one_of(None, 0, 2, -1),
}
RANKS: dict[str, tuple[int, int]] = {}
