"""Networks in PyTorch: the depth of models in use, with few weights, so that nodes dominate the time."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional


class SqueezeExcitation(nn.Module):
    """Scale each channel by a gate that is computed from the mean of all channels."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.gate = nn.Sequential(
            nn.AdaptiveAvgPool2d(1),
            nn.Conv2d(channels, channels // 4, 1),
            nn.ReLU(),
            nn.Conv2d(channels // 4, channels, 1),
            nn.Hardsigmoid(),
        )

    def forward(self, value: Tensor) -> Tensor:
        return value * self.gate(value)


class Bottleneck(nn.Module):
    """Inverted residual block of MobileNet."""

    def __init__(self, channels: int, out: int, stride: int, activation: nn.Module) -> None:
        super().__init__()
        wide = 4 * channels
        self.layers = nn.Sequential(
            nn.Conv2d(channels, wide, 1, bias=False),
            nn.BatchNorm2d(wide),
            activation,
            nn.Conv2d(wide, wide, 3, stride, 1, groups=wide, bias=False),
            nn.BatchNorm2d(wide),
            activation,
            SqueezeExcitation(wide),
            nn.Dropout(0.1),
            nn.Conv2d(wide, out, 1, bias=False),
            nn.BatchNorm2d(out),
        )
        self.is_residual = stride == 1 and channels == out

    def forward(self, value: Tensor) -> Tensor:
        result: Tensor = self.layers(value)
        return value + result if self.is_residual else result


class Cnn(nn.Module):
    """Classifier of images."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), nn.BatchNorm2d(8), nn.ReLU6())
        activations = [nn.ReLU6(), nn.Hardswish(), nn.ELU()] * 4
        self.blocks = nn.ModuleList(
            Bottleneck(8, 8, 2 if position % 4 == 3 else 1, each) for position, each in enumerate(activations)
        )
        self.head = nn.Linear(16, 10)

    def forward(self, image: Tensor) -> Tensor:
        value = self.stem(image)
        for block in self.blocks:
            value = block(value)
        pooled = functional.adaptive_avg_pool2d(value, 1).flatten(1)
        peaks = functional.adaptive_max_pool2d(value, 1).flatten(1)
        return functional.log_softmax(self.head(torch.cat([pooled, peaks], 1)), dim=1)


class EncoderLayer(nn.Module):
    """Layer of BERT, with heads that are split by computed shapes."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))
        self.wide, self.narrow = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)

    def split(self, value: Tensor) -> Tensor:
        batch, length, width = value.size()
        return value.view(batch, length, self.heads, width // self.heads).permute(0, 2, 1, 3)

    def forward(self, value: Tensor, bias: Tensor) -> Tensor:
        query, key, content = (self.split(each(value)) for each in (self.query, self.key, self.value))
        scores = query @ key.transpose(-1, -2) / query.size(-1) ** 0.5 + bias
        mixed = (scores.softmax(-1) @ content).permute(0, 2, 1, 3).contiguous()
        value = self.first(value + self.out(mixed.view(value.size())))
        return self.second(value + self.narrow(functional.gelu(self.wide(value))))


class Encoder(nn.Module):
    """Encoder of text, with an attention mask and a pooled output."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.places, self.norm = nn.Embedding(50, 16), nn.Embedding(64, 16), nn.LayerNorm(16)
        self.layers = nn.ModuleList(EncoderLayer(16, 2) for _ in range(12))

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        places = torch.arange(ids.size(1), device=ids.device).unsqueeze(0)
        value = self.norm(self.words(ids) + self.places(places))
        bias = (1 - mask[:, None, None, :].to(value.dtype)) * -10000.0
        for layer in self.layers:
            value = layer(value, bias)
        kept = mask.unsqueeze(-1).to(value.dtype)
        return functional.normalize((value * kept).sum(1) / kept.sum(1).clamp(min=1e-9), dim=1)


class RmsNorm(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, value: Tensor) -> Tensor:
        return self.weight * (value * torch.rsqrt(value.pow(2).mean(-1, keepdim=True) + 1e-6))


class DecoderLayer(nn.Module):
    """Layer of Llama: rotary embedding, shared key heads, and a cache of keys and values."""

    def __init__(self, width: int, heads: int, shared: int) -> None:
        super().__init__()
        self.heads, self.shared, self.size = heads, shared, width // heads
        self.query, self.out = nn.Linear(width, width, bias=False), nn.Linear(width, width, bias=False)
        self.key, self.value = (nn.Linear(width, shared * self.size, bias=False) for _ in range(2))
        self.gate, self.up = nn.Linear(width, 2 * width, bias=False), nn.Linear(width, 2 * width, bias=False)
        self.down = nn.Linear(2 * width, width, bias=False)
        self.first, self.second = RmsNorm(width), RmsNorm(width)

    def rotate(self, value: Tensor, cosines: Tensor, sines: Tensor) -> Tensor:
        half = self.size // 2
        turned = torch.cat((-value[..., half:], value[..., :half]), dim=-1)
        return value * cosines + turned * sines

    def repeat(self, value: Tensor) -> Tensor:
        batch, heads, length, size = value.shape
        copies = self.heads // self.shared
        return value[:, :, None].expand(batch, heads, copies, length, size).reshape(
            batch, self.heads, length, size
        )  # fmt: skip

    def forward(
        self, value: Tensor, mask: Tensor, turns: tuple[Tensor, Tensor], past: tuple[Tensor, Tensor]
    ) -> tuple[Tensor, Tensor, Tensor]:
        batch, length, width = value.shape
        normal = self.first(value)
        query = self.query(normal).view(batch, length, self.heads, self.size).transpose(1, 2)
        key = self.key(normal).view(batch, length, self.shared, self.size).transpose(1, 2)
        content = self.value(normal).view(batch, length, self.shared, self.size).transpose(1, 2)
        key = torch.cat([past[0], self.rotate(key, *turns)], dim=2)
        content = torch.cat([past[1], content], dim=2)
        scores = self.rotate(query, *turns) @ self.repeat(key).transpose(2, 3) / self.size**0.5 + mask
        mixed = functional.softmax(scores, dim=-1) @ self.repeat(content)
        value = value + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        normal = self.second(value)
        return value + self.down(functional.silu(self.gate(normal)) * self.up(normal)), key, content


class Decoder(nn.Module):
    """Decoder of text that computes positions and the causal mask from dynamic shapes."""

    LAYERS = 8

    def __init__(self) -> None:
        super().__init__()
        self.words, self.norm = nn.Embedding(50, 32), RmsNorm(32)
        self.layers = nn.ModuleList(DecoderLayer(32, 4, 2) for _ in range(self.LAYERS))
        self.register_buffer("frequencies", 1.0 / 10000 ** (torch.arange(0, 8, 2).float() / 8))

    def forward(self, ids: Tensor, cache: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        value, before = self.words(ids), cache[0].shape[2]
        places = torch.arange(before, before + ids.shape[1], device=ids.device)
        angles = places[:, None].float() * self.frequencies[None, :]
        angles = torch.cat((angles, angles), dim=-1)
        reached = torch.arange(before + ids.shape[1], device=ids.device)[None, :] > places[:, None]
        mask = torch.zeros_like(reached, dtype=value.dtype).masked_fill(reached, -1e9)
        present: list[Tensor] = []
        for position, layer in enumerate(self.layers):
            past = (cache[2 * position], cache[2 * position + 1])
            value, key, content = layer(value, mask, (angles.cos(), angles.sin()), past)
            present += [key, content]
        return functional.linear(self.norm(value), self.words.weight), *present


class Detector(nn.Module):
    """Feature pyramid and detection head that decodes boxes and selects the best ones."""

    def __init__(self) -> None:
        super().__init__()
        self.stages = nn.ModuleList(
            nn.Sequential(
                nn.Conv2d(3 if level == 0 else 8, 8, 3, 2, 1),
                nn.BatchNorm2d(8),
                nn.LeakyReLU(0.1),
                *(layer for _ in range(3) for layer in (nn.Conv2d(8, 8, 3, 1, 1), nn.SiLU())),
            )
            for level in range(4)
        )
        self.sides = nn.ModuleList(nn.Conv2d(8, 8, 1) for _ in range(4))
        self.classes = nn.ModuleList(
            nn.Sequential(nn.Conv2d(8, 8, 3, 1, 1), nn.SiLU(), nn.Conv2d(8, 5, 1)) for _ in range(4)
        )
        self.boxes = nn.ModuleList(
            nn.Sequential(nn.Conv2d(8, 8, 3, 1, 1), nn.SiLU(), nn.Conv2d(8, 16, 1)) for _ in range(4)
        )
        self.register_buffer("steps", torch.arange(4.0))

    def forward(self, image: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        levels: list[Tensor] = []
        value = image
        for stage in self.stages:
            value = stage(value)
            levels.append(value)
        top = self.sides[3](levels[3])
        features = [top]
        for level in (2, 1, 0):
            top = self.sides[level](levels[level]) + functional.interpolate(
                top, size=levels[level].shape[-2:], mode="nearest"
            )
            features.insert(0, top)
        scores = [self.scores(each, level) for level, each in enumerate(features)]
        boxes = [self.decoded(each, level) for level, each in enumerate(features)]
        best, labels = torch.cat(scores, 1).max(dim=2)
        kept, order = best.topk(10, dim=1)
        chosen = torch.cat(boxes, 1).gather(1, order.unsqueeze(-1).expand(-1, -1, 4))
        return chosen, kept, labels.gather(1, order)

    def scores(self, feature: Tensor, level: int) -> Tensor:
        return self.classes[level](feature).flatten(2).transpose(1, 2).sigmoid()

    def decoded(self, feature: Tensor, level: int) -> Tensor:
        """Return the corners of the boxes, whose sides are expected values of distributions."""
        height, width = feature.shape[-2:]
        stride = 2.0 ** (level + 1)
        rows, columns = torch.arange(height).float() + 0.5, torch.arange(width).float() + 0.5
        centers = torch.stack(
            [columns[None, :].expand(height, width), rows[:, None].expand(height, width)], -1
        ).reshape(1, -1, 2)
        sides = self.boxes[level](feature)
        sides = sides.view(sides.shape[0], 4, 4, -1).softmax(2).permute(0, 3, 1, 2) @ self.steps
        near, far = sides.split([2, 2], dim=2)
        return (torch.cat([centers - near, centers + far], 2) * stride).clamp(min=0.0)


class Recurrent(nn.Module):
    """Tagger of text: bidirectional LSTM layers of which each is normalized."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.head = nn.Embedding(50, 16), nn.Linear(16, 5)
        self.layers = nn.ModuleList(nn.LSTM(16, 8, bidirectional=True, batch_first=True) for _ in range(6))
        self.norms = nn.ModuleList(nn.LayerNorm(16) for _ in self.layers)

    def forward(self, ids: Tensor) -> tuple[Tensor, Tensor]:
        value = self.words(ids)
        for layer, norm in zip(self.layers, self.norms, strict=True):
            result, _ = layer(value)
            value = norm(value + functional.dropout(result, 0.1, self.training))
        scores = self.head(value).log_softmax(-1)
        return scores, scores.argmax(-1)


class Network(NamedTuple):
    """A network, example inputs, and the names of their dynamic dimensions by position."""

    build: Callable[[], nn.Module]
    inputs: tuple[Tensor | tuple[Tensor, ...], ...]
    dynamic: dict[str, dict[int, str]]


IMAGE, IDS, CACHE = torch.zeros(2, 3, 64, 64), torch.arange(14).reshape(2, 7), torch.zeros(2, 2, 3, 8)
TEXT = {0: "batch", 1: "length"}
PAST = {f"past_{position}": {0: "batch", 2: "past"} for position in range(2 * Decoder.LAYERS)}
NETWORKS = {
    "CNN": Network(Cnn, (IMAGE,), {"image": {0: "batch"}}),
    "encoder": Network(Encoder, (IDS, torch.ones_like(IDS)), {"ids": TEXT, "mask": TEXT}),
    "decoder": Network(Decoder, (IDS, (CACHE,) * len(PAST)), {"ids": TEXT, **PAST}),
    "detector": Network(Detector, (IMAGE,), {"image": {0: "batch", 2: "height", 3: "width"}}),
    "LSTM": Network(Recurrent, (IDS,), {"ids": TEXT}),
}
