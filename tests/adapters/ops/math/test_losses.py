"""Expansion of losses below opset 12: comparison with the label selects the score of each sample."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from support.conversion import convert_and_check
from support.dynamic import with_symbolic_dims
from support.execution import Array, assert_equal, build, run

from opshift import convert_version

Case = tuple[tuple[int, ...], dict[str, Any], bool]
CLASSES = 5
RANDOM = np.random.default_rng(12)


def _feeds(shape: tuple[int, ...], attributes: dict[str, Any], weighted: bool) -> dict[str, Array]:
    """Return scores and labels, and ignore one label if `ignore_index` is set."""
    batch, *spatial = shape
    scores = RANDOM.standard_normal((batch, CLASSES, *spatial)).astype(np.float32)
    labels = RANDOM.integers(0, CLASSES, shape)
    if "ignore_index" in attributes:
        labels.flat[1] = attributes["ignore_index"]
    weight = {"weight": RANDOM.random(CLASSES).astype(np.float32) + 0.5} if weighted else {}
    return {"scores": scores, "labels": labels, **weight}


def _model(op: str, feeds: dict[str, Array], outputs: list[str], **attributes: Any) -> onnx.ModelProto:
    return build([helper.make_node(op, list(feeds), outputs, name="node", **attributes)], feeds, outputs, 13)


CASES = [
    pytest.param((3,), {}, False, id="mean"),
    pytest.param((3,), {}, True, id="weighted mean"),
    pytest.param((3,), {"reduction": "sum"}, True, id="weighted sum"),
    pytest.param((3, 2, 4), {"reduction": "none"}, False, id="per element"),
    pytest.param((3, 2, 4), {"reduction": "none"}, True, id="weighted per element"),
    pytest.param((3, 2), {"ignore_index": 2}, False, id="ignored class"),
    pytest.param((3, 2), {"ignore_index": 2}, True, id="ignored class, weighted"),
    pytest.param((3, 2), {"ignore_index": 2, "reduction": "none"}, False, id="ignored class, per element"),
    pytest.param((3, 2), {"ignore_index": -7}, True, id="ignored label below all classes"),
    pytest.param(
        (3, 2), {"ignore_index": 255, "reduction": "sum"}, False, id="ignored label above all classes"
    ),
]


@pytest.mark.parametrize(("shape", "attributes", "weighted"), CASES)
def test_expands_negative_log_likelihood_loss(
    shape: tuple[int, ...], attributes: dict[str, Any], weighted: bool
) -> None:
    feeds = _feeds(shape, attributes, weighted)
    model = _model("NegativeLogLikelihoodLoss", feeds, ["loss"], **attributes)
    for target in (9, 11):
        convert_and_check(model, target, feeds)
        convert_and_check(with_symbolic_dims(convert_version(model, 13)), target, feeds)


@pytest.mark.parametrize(("shape", "attributes", "weighted"), CASES)
def test_expands_softmax_cross_entropy_loss(
    shape: tuple[int, ...], attributes: dict[str, Any], weighted: bool
) -> None:
    feeds = _feeds(shape, attributes, weighted)
    model = _model("SoftmaxCrossEntropyLoss", feeds, ["loss", "log_prob"], **attributes)
    for target in (9, 11):
        convert_and_check(model, target, feeds)


def test_ignores_scores_of_other_classes() -> None:
    """Infinite and NaN scores of classes other than the label do not affect the loss."""
    scores = np.array([[-1.0, -np.inf, np.nan], [-np.inf, -2.0, np.inf]], np.float32)
    feeds = {"scores": scores, "labels": np.array([0, 1])}
    convert_and_check(_model("NegativeLogLikelihoodLoss", feeds, ["loss"]), 11, feeds, [np.float32(1.5)])


def test_accepts_int32_labels() -> None:
    feeds = _feeds((3, 2), {}, True)
    feeds["labels"] = feeds["labels"].astype(np.int32)
    convert_and_check(_model("NegativeLogLikelihoodLoss", feeds, ["loss"]), 11, feeds)


def test_returns_nan_if_all_labels_are_ignored() -> None:
    feeds = _feeds((2,), {}, False)
    feeds["labels"][:] = 1
    model = _model("SoftmaxCrossEntropyLoss", feeds, ["loss"], ignore_index=1)
    assert_equal(run(convert_version(model, 11), feeds), [np.float32(np.nan)])
