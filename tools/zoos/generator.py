"""Seeded collections of models, with the outcome that their conversion must have."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from random import Random
from typing import Literal, NamedTuple

from onnx import TensorProto

from zoos.blocks import REFUSED, externalize, random_model

Expectation = Literal["converted", "refused", "broken"]


class Mixture(NamedTuple):
    """Parts of a collection."""

    medium: float = 0.0095
    large: float = 0.0005
    broken: float = 0.02
    refused: float = 0.03
    external: float = 0.01
    medium_bytes: tuple[int, int] = (1_000_000, 30_000_000)
    large_bytes: int = 200_000_000
    opsets: tuple[int, int] = (7, 21)


MIXTURE = Mixture()


class GeneratedModel(NamedTuple):
    """Model file, a data file if it has one, and the expected outcome."""

    path: str
    content: bytes
    expected: Expectation
    data: bytes = b""

    @property
    def data_path(self) -> str:
        """Path of the data file."""
        return f"{self.path}.data"

    def manifest_line(self) -> str:
        """Return what a trial compares the results with, as JSON."""
        fields = {"path": self.path, "bytes": len(self.content), "expected": self.expected}
        return json.dumps(fields | ({"data": self.data_path} if self.data else {}))


def generate(count: int, seed: int = 0, mixture: Mixture = MIXTURE) -> Iterator[GeneratedModel]:
    """Yield `count` models; each depends only on its position, the seed and the mixture."""
    medium, large = math.ceil(count * mixture.medium), math.ceil(count * mixture.large)
    order = list(range(count))
    Random(seed).shuffle(order)
    for position, rank in enumerate(order):
        random = Random(f"{seed} {position}")
        if rank < large:
            size = mixture.large_bytes
        elif rank < large + medium:
            size = int(math.exp(random.uniform(*map(math.log, mixture.medium_bytes))))
        else:
            size = int(math.exp(random.uniform(math.log(1_500), math.log(95_000))))
        yield _random_generated_model(random, position, size, mixture, is_small=rank >= large + medium)


def _random_generated_model(
    random: Random, position: int, size: int, mixture: Mixture, *, is_small: bool
) -> GeneratedModel:
    path = f"team-{position % 17:02}/{'v2/' * (position % 5 == 0)}model-{position:05}.onnx"
    draw = random.random() if is_small else 1.0
    if draw < mixture.broken:
        return GeneratedModel(path, _broken_file(random, size), "broken")
    if draw < mixture.broken + mixture.refused:
        opset = random.randrange(20, 22)
        model = random_model(random, opset, size, random.choice(REFUSED))
        return GeneratedModel(path, model.SerializeToString(), "refused")
    model = random_model(random, random.randint(*mixture.opsets), size)
    if draw < mixture.broken + mixture.refused + mixture.external:
        data = externalize(model, f"{path.rpartition('/')[2]}.data")
        return GeneratedModel(path, model.SerializeToString(), "converted", data)
    return GeneratedModel(path, bytes(model.SerializeToString()), "converted")


def _broken_file(random: Random, size: int) -> bytes:
    kind = random.randrange(5)
    if kind == 0:
        return b""
    if kind == 1:
        return b'{"error": "access denied"}\n' * (1 + size // 40)
    if kind == 2:
        tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[1], raw_data=bytes(4))
        return bytes(tensor.SerializeToString())
    if kind == 3:
        return b"PK\x03\x04" + random.randbytes(size)
    data = bytes(random_model(random, 13, size).SerializeToString())
    return data[: random.randrange(len(data) // 4, len(data) // 2)]
