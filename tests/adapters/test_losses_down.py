"""Losses in opsets before they came: the number of each sample's class, picked by comparison."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from support.dynamic import symbolic
from support.running import Array, assert_equal, build, run

from opshift import convert_version

Converted = Callable[..., onnx.ModelProto]
Case = tuple[tuple[int, ...], dict[str, Any], bool]
CLASSES = 5
NUMBERS = np.random.default_rng(12)


def _feeds(shape: tuple[int, ...], attributes: dict[str, Any], weighted: bool) -> dict[str, Array]:
    """Scores, and labels of which one is to be ignored where one can be."""
    batch, *places = shape
    scores = NUMBERS.standard_normal((batch, CLASSES, *places)).astype(np.float32)
    labels = NUMBERS.integers(0, CLASSES, shape)
    if "ignore_index" in attributes:
        labels.flat[1] = attributes["ignore_index"]
    weight = {"weight": NUMBERS.random(CLASSES).astype(np.float32) + 0.5} if weighted else {}
    return {"scores": scores, "labels": labels, **weight}


def _model(op: str, feeds: dict[str, Array], outputs: list[str], **attributes: Any) -> onnx.ModelProto:
    return build([helper.make_node(op, list(feeds), outputs, name="node", **attributes)], feeds, outputs, 13)


CASES = [
    pytest.param((3,), {}, False, id="averaged"),
    pytest.param((3,), {}, True, id="averaged by weight"),
    pytest.param((3,), {"reduction": "sum"}, True, id="summed by weight"),
    pytest.param((3, 2, 4), {"reduction": "none"}, False, id="for each place"),
    pytest.param((3, 2, 4), {"reduction": "none"}, True, id="for each place, by weight"),
    pytest.param((3, 2), {"ignore_index": 2}, False, id="a class ignored"),
    pytest.param((3, 2), {"ignore_index": 2}, True, id="a class ignored, by weight"),
    pytest.param(
        (3, 2), {"ignore_index": 2, "reduction": "none"}, False, id="a class ignored, for each place"
    ),
    pytest.param((3, 2), {"ignore_index": -7}, True, id="a label below all classes ignored"),
    pytest.param((3, 2), {"ignore_index": 255, "reduction": "sum"}, False, id="a label above all ignored"),
]


@pytest.mark.parametrize(("shape", "attributes", "weighted"), CASES)
def test_negative_log_likelihood(
    shape: tuple[int, ...], attributes: dict[str, Any], weighted: bool, converted: Converted
) -> None:
    feeds = _feeds(shape, attributes, weighted)
    model = _model("NegativeLogLikelihoodLoss", feeds, ["loss"], **attributes)
    for target in (9, 11):
        converted(model, target, feeds)
        converted(symbolic(convert_version(model, 13)), target, feeds)


@pytest.mark.parametrize(("shape", "attributes", "weighted"), CASES)
def test_softmax_cross_entropy(
    shape: tuple[int, ...], attributes: dict[str, Any], weighted: bool, converted: Converted
) -> None:
    feeds = _feeds(shape, attributes, weighted)
    model = _model("SoftmaxCrossEntropyLoss", feeds, ["loss", "log_prob"], **attributes)
    for target in (9, 11):
        converted(model, target, feeds)


def test_what_is_not_picked_does_not_count(converted: Converted) -> None:
    """A score without a bound of a class that is not the label's stays out of the loss."""
    scores = np.array([[-1.0, -np.inf, np.nan], [-np.inf, -2.0, np.inf]], np.float32)
    feeds = {"scores": scores, "labels": np.array([0, 1])}
    converted(_model("NegativeLogLikelihoodLoss", feeds, ["loss"]), 11, feeds, [np.float32(1.5)])


def test_labels_may_be_int32(converted: Converted) -> None:
    feeds = _feeds((3, 2), {}, True)
    feeds["labels"] = feeds["labels"].astype(np.int32)
    converted(_model("NegativeLogLikelihoodLoss", feeds, ["loss"]), 11, feeds)


def test_all_ignored_averages_nothing() -> None:
    feeds = _feeds((2,), {}, False)
    feeds["labels"][:] = 1
    model = _model("SoftmaxCrossEntropyLoss", feeds, ["loss"], ignore_index=1)
    assert_equal(run(convert_version(model, 11), feeds), [np.float32(np.nan)])
