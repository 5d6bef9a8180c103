"""Layers and functions of PyTorch, each as a network of its own: operators that changed between opsets."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

from networks import Network


class Function(nn.Module):
    """Network that computes a function of its inputs."""

    def __init__(self, function: Callable[..., Tensor | tuple[Tensor, ...]]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: Tensor) -> Tensor | tuple[Tensor, ...]:
        return self.function(*inputs)


VECTORS, IMAGES = torch.linspace(-2, 2, 48).reshape(4, 12), torch.linspace(-2, 2, 288).reshape(2, 4, 6, 6)
SEQUENCES = torch.linspace(-1, 1, 96).reshape(2, 6, 8)
POSITIONS = torch.tensor([[0, 3, 1], [2, 2, 0], [1, 0, 3], [3, 1, 2]])
HEADS = torch.linspace(-1, 1, 192).reshape(2, 4, 6, 4)


def _function(function: Callable[..., Tensor | tuple[Tensor, ...]], *inputs: Tensor) -> Network:
    return Network(lambda: Function(function), inputs, {})


def _layer(build: Callable[[], nn.Module], value: Tensor) -> Network:
    return Network(build, (value,), {"input": {0: "batch"}})


LAYERS = {
    "adaptive pooling": _layer(lambda: nn.AdaptiveAvgPool2d(3), IMAGES),
    "argmax, cumsum": _function(lambda value: (value.argmax(1), value.cumsum(1)), VECTORS),
    "average pooling, ceil mode": _layer(lambda: nn.AvgPool2d(3, 2, 1, ceil_mode=True), IMAGES),
    "batch normalization": _layer(lambda: nn.BatchNorm2d(4), IMAGES),
    "clamp by tensors": _function(lambda value, low: value.clamp(min=low), VECTORS, VECTORS * 0.5),
    "comparisons": _function(lambda a, b: ((a <= b), (a == b), torch.where(a > b, a, b)), VECTORS, -VECTORS),
    "convolution, transposed": _layer(lambda: nn.ConvTranspose2d(4, 3, 3, 2, 1, 1), IMAGES),
    "cosine similarity": _function(functional.cosine_similarity, VECTORS, VECTORS + 1),
    "cross entropy": _function(
        lambda scores, labels: functional.cross_entropy(scores, labels), VECTORS, torch.tensor([0, 5, 11, 3])
    ),
    "dropout, ELU": _layer(lambda: nn.Sequential(nn.Linear(12, 8), nn.Dropout(), nn.ELU()), VECTORS),
    "einsum": _function(lambda a, b: torch.einsum("bhid,bhjd->bhij", a, b), HEADS, HEADS),
    "fold": _layer(lambda: nn.Sequential(nn.Unfold(3, padding=1), nn.Fold((6, 6), 3, padding=1)), IMAGES),
    "gather, scatter": _function(
        lambda value, at: value.scatter_add(1, at, value.gather(1, at) * 2), VECTORS, POSITIONS
    ),
    "GELU": _layer(lambda: nn.Sequential(nn.Linear(12, 8), nn.GELU(), nn.GELU("tanh")), VECTORS),
    "grid sample": _function(
        lambda value, grid: functional.grid_sample(value, grid, align_corners=False),
        IMAGES,
        torch.linspace(-1, 1, 64).reshape(2, 4, 4, 2),
    ),
    "group normalization": _layer(lambda: nn.GroupNorm(2, 4), IMAGES),
    "GRU": _layer(lambda: nn.GRU(8, 4, batch_first=True), SEQUENCES),
    "Hardswish, Mish": _layer(lambda: nn.Sequential(nn.Hardswish(), nn.Mish()), VECTORS),
    "instance normalization": _layer(lambda: nn.InstanceNorm2d(4, affine=True), IMAGES),
    "layer normalization": _layer(lambda: nn.LayerNorm(12), VECTORS),
    "log softmax": _layer(lambda: nn.LogSoftmax(1), VECTORS),
    "logical, bitwise": _function(
        lambda a, b: ((a & b), (a | b) ^ b, (a > 1) & (b > 1)), POSITIONS, POSITIONS
    ),
    "maximum pooling, dilated": _layer(lambda: nn.MaxPool2d(2, 1, dilation=2), IMAGES),
    "multi-head attention": _function(functional.scaled_dot_product_attention, HEADS, HEADS, HEADS),
    "norms": _function(lambda value: (value.norm(dim=1), value.abs().sum(0), value.norm(1)), VECTORS),
    "padding": _function(
        lambda value: functional.pad(functional.pad(value, (1, 2, 1, 0), "reflect"), (1, 1), value=2.0),
        IMAGES,
    ),
    "pixel shuffle": _layer(lambda: nn.PixelShuffle(2), IMAGES),
    "reductions": _function(
        lambda value: (value.mean((2, 3), keepdim=True), value.amax(1), value.prod(3), value.logsumexp(2)),
        IMAGES,
    ),
    "resize, bicubic": _layer(lambda: nn.Upsample(scale_factor=2, mode="bicubic"), IMAGES),
    "resize, nearest": _layer(lambda: nn.Upsample(size=(9, 11), mode="nearest"), IMAGES),
    "RMS normalization": _layer(lambda: nn.RMSNorm(12), VECTORS),
    "split, stack": _function(
        lambda value: torch.stack([each * 2 for each in value.split([4, 4, 4], 1)], 1), VECTORS
    ),
    "squeeze, expand": _function(lambda value: value[:, :1].squeeze(1).unsqueeze(-1).expand(-1, 5), VECTORS),
    "standard deviation": _function(lambda value: (value.std(1), value.var(0)), VECTORS),
    "topk, sort": _function(lambda value: (*value.topk(3, 1), value.sort(1).values), VECTORS),
    "triangles": _function(lambda value: (value.tril(-1), value.triu(1)), SEQUENCES),
}
