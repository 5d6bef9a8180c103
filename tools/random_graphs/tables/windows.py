"""Convolutions and pooling, over one or two spatial axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from random_graphs.draft import Choice, Draft, TensorSpec


def image(n: Draft) -> TensorSpec:
    """Choose images large enough for every kernel."""
    spatial = [n.number(5, 6) for _ in range(n.one_of(1, 2, 2))]
    return TensorSpec((n.number(1, 2), _group_count(n) * n.number(1, 2), *spatial))


def _group_count(n: Draft) -> int:
    found: int = n.fact("group", lambda: n.one_of(1, 1, 2) if "group" in n.version.attributes else 1)
    return found


def spatial(n: Draft) -> int:
    """Return the number of spatial dimensions."""
    return n.rank - 2


def kernel(n: Draft) -> list[int]:
    """Draw the sizes of the window, once for each node."""
    return n.numbers("kernel", spatial(n), 1, 3)


def weights(n: Draft) -> TensorSpec:
    """Choose weights: feature maps of all groups by channels of one group."""
    maps, channels = _group_count(n) * n.number(1, 2), n.shape[1]
    if n.version.name == "ConvTranspose":
        n.facts["maps"] = maps
        return TensorSpec((channels, maps // _group_count(n), *kernel(n)))
    n.facts["maps"] = maps
    return TensorSpec((maps, channels // _group_count(n), *kernel(n)))


def maps(n: Draft) -> TensorSpec | None:
    """Draw no bias, or a vector with one number for each feature map."""
    return None if n.chance(50) else TensorSpec((n.facts["maps"],))


def kernel_shape(n: Draft) -> list[int] | None:
    attribute = n.version.attributes["kernel_shape"]
    return kernel(n) if attribute.required or n.chance(60) else None


def strides(n: Draft) -> Any:
    """Choose strides; with SAME padding at most the kernel size, since some runtimes reject larger ones."""
    found = n.numbers("strides", spatial(n), 1, 2)
    if str(n.attribute("auto_pad")).startswith("SAME"):
        found = [min(pair) for pair in zip(found, kernel(n), strict=True)]
    return n.one_of(None, found)


def dilations(n: Draft) -> Any:
    """Draw dilations, which `auto_pad` excludes."""
    if n.attribute("auto_pad") not in (None, "NOTSET"):
        return None
    return n.one_of(None, n.numbers("dilations", spatial(n), 1, 2))


def pads(n: Draft) -> Sequence[int] | None:
    """Choose pads smaller than the kernel, or `None` with `auto_pad`."""
    if "auto_pad" in n.version.attributes and n.attribute("auto_pad") not in (None, "NOTSET"):
        return None
    if n.chance(40):
        return None
    return [n.number(0, size - 1) for size in kernel(n) * 2]


def auto_pad(n: Draft) -> str | None:
    found: str | None = n.attribute("auto_pad")
    return found


CHOICES: dict[str, Choice] = {
    f"{family}.{name}": choice
    for family in ("convolution", "conv_transpose", "pool", "quantized_convolution")
    for name, choice in (
        ("X", image), ("x", image), ("W", weights), ("w", weights), ("B", maps), ("group", _group_count),
        ("kernel_shape", kernel_shape), ("strides", strides), ("dilations", dilations), ("pads", pads),
        ("auto_pad", auto_pad), ("p", lambda n: n.one_of(None, 1, 2, 3)),
    )
}  # fmt: skip
CHOICES |= {
    "global_pool.X": image,
    "GlobalLpPool.p": lambda n: n.one_of(None, 1, 3),
    "LRN.X": lambda n: TensorSpec((1, n.number(1, 4), 2, 3)),
    "LRN.size": lambda n: n.one_of(1, 2, 3),
    "ConvInteger.x_zero_point": lambda n: n.one_of(None, 3),
    "ConvInteger.w_zero_point": lambda n: n.one_of(None, 2),
    "ConvTranspose.output_padding": lambda n: None,
    "ConvTranspose.output_shape": lambda n: None,
    "DeformConv.X": lambda n: TensorSpec((1, 2, 4, 4)),
    "DeformConv.W": lambda n: TensorSpec((n.facts.setdefault("maps", 2), 2, 2, 2)),
    "DeformConv.offset": lambda n: TensorSpec((1, 8, 3, 3)),
    "DeformConv.mask": lambda n: n.one_of(None, TensorSpec((1, 4, 3, 3))),
    "DeformConv.kernel_shape": lambda n: n.one_of(None, [2, 2]),
    "DeformConv.pads": lambda n: None,
    "DeformConv.strides": lambda n: None,
    "DeformConv.dilations": lambda n: None,
    "DeformConv.group": lambda n: None,
    "DeformConv.offset_group": lambda n: None,
}
RANKS: dict[str, tuple[int, int]] = {}
