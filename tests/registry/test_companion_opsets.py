"""Opsets of the default domain that fit to opsets of other domains."""

from __future__ import annotations

import pytest

from opshift.registry.registry import default_registry
from opshift.registry.releases import Release, Releases

RELEASES = default_registry().releases


@pytest.mark.parametrize(
    ("opsets", "expected"),
    [
        ({"ai.onnx.preview.training": 1}, 12),
        ({"ai.onnx.preview": 1}, 27),
        ({"ai.onnx.ml": 1}, 1),
        ({"ai.onnx.ml": 3}, 16),
        ({"ai.onnx.ml": 3, "ai.onnx.preview.training": 1, "com.acme": 7}, 16),
        ({"ai.onnx": 17}, 17),
        ({"com.acme": 7}, 1),
        ({"ai.onnx.ml": 99}, 1),
        ({}, 1),
    ],
    ids=str,
)
def test_a_companion_is_of_the_first_release_with_all_domains(opsets: dict[str, int], expected: int) -> None:
    assert RELEASES.companion_opset(opsets) == expected
    for domain, opset in opsets.items():
        if domain in RELEASES.onnx["1.23"].opsets and opset < 99:
            newest = RELEASES.companion_of(domain, expected)
            assert newest is not None
            assert newest >= opset


def test_a_release_may_lack_the_default_domain() -> None:
    releases = Releases(onnx={"1.0": Release(ir_version=8, opsets={"com.acme": 2})})
    assert releases.companion_opset({"com.acme": 1}) == 1
    assert releases.companion_of("com.acme", 17) == 2
