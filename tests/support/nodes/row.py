"""One node of one operator version, as a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from onnx import TensorProto, helper

from opshift.registry.names import DEFAULT_DOMAIN
from support.domains import wire
from support.published import Case
from support.running import Array, build

RANDOM = np.random.default_rng(0)
X = np.array([[-1.5, 0, 2], [0.5, -0.25, 1]], np.float32)
POSITIVE = np.abs(X) + np.float32(0.5)
IMAGE = RANDOM.standard_normal((1, 2, 4, 6)).astype(np.float32)


class Row(NamedTuple):
    """A node and the version that it is of, and the only step it is for if it says nothing of others."""

    domain: str
    op: str
    version: int
    case: Case
    to: int | None = None


def row(
    op: str,
    version: int,
    feeds: Mapping[str, Any],
    attributes: Mapping[str, Any] | None = None,
    *,
    outputs: Mapping[str, int] | None = None,
    inputs: Sequence[str] | None = None,
    constants: str = "",
    domain: str = DEFAULT_DOMAIN,
    to: int | None = None,
) -> Row:
    """A node that reads the feeds in order; `constants` lists those that are initializers.

    `outputs` maps names to element types, or to 0 for an output that nobody reads.
    """
    arrays = {name: np.asarray(each) for name, each in feeds.items()}
    given = {name: each for name, each in arrays.items() if name in constants.split()}
    open_ = {name: each for name, each in arrays.items() if name not in given}
    results = outputs or {"y": TensorProto.FLOAT}
    node = helper.make_node(
        op,
        list(feeds) if inputs is None else inputs,
        list(results),
        name="node",
        domain=wire(domain),
        **(attributes or {}),
    )
    named = {name: element for name, element in results.items() if name and element}
    model = build([node], open_, named, {wire(domain): version}, initializers=given)
    return Row(domain, op, version, Case(model, open_), to)


def floats(values: Any) -> Array:
    return np.array(values, np.float32)
