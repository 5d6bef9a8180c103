"""`consumers.yaml`: programs beside ONNX and onnxruntime, in the project's folder and in a user's."""

from __future__ import annotations

from pathlib import Path

import pytest

from opshift.registry.catalogue import default_registry
from opshift.registry.errors import DefinitionError, OpshiftError
from opshift.registry.ir_versions import ir_versions
from opshift.registry.releases import Consumer

RELEASES = default_registry().releases
CONSUMERS = [
    pytest.param(each, id=f"{product}-{version}")
    for product, versions in RELEASES.consumers.items()
    for version, each in versions.items()
]
OURS = """
phone:
  "2":
    opsets: {ai.onnx: 13}
    ir_version: 7
    source: the manual of the phone
tensorrt:
  "8.6":
    opsets: {ai.onnx: 16}
    source: tried
"""


@pytest.mark.parametrize("consumer", CONSUMERS)
def test_a_fact_says_where_it_is_written_and_makes_sense(consumer: Consumer) -> None:
    assert consumer.source.startswith("https://")
    for domain, opset in consumer.opsets.items():
        assert 1 <= opset <= default_registry().newest_opset(domain)
    assert consumer.ir_version in (None, *ir_versions().versions)


def test_the_products_are_those_of_both_files() -> None:
    assert list(RELEASES.products)[:2] == ["onnx", "onnxruntime"]
    assert {"tensorrt", "openvino", "windowsml", "sentis", "rknn"} <= set(RELEASES.products)


@pytest.mark.parametrize(
    ("name", "opset", "ir_version"),
    [
        ("tensorrt-8.6", 17, None),
        ("tensorrt-8.6.1.6", 17, None),
        ("tensorrt-11.2", 25, None),
        ("windowsml-1809", 7, 3),
        ("rknn-1.6", 19, None),
    ],
)
def test_one_is_found_by_its_name(name: str, opset: int, ir_version: int | None) -> None:
    found = RELEASES.named(name)
    assert (found.opsets["ai.onnx"], found.ir_version) == (opset, ir_version)


@pytest.mark.parametrize(
    ("name", "reason", "remedy"),
    [
        ("tensorrt-8.4", "unknown version '8.4' of tensorrt", "8.5"),
        ("tensorrt", "unknown release 'tensorrt'", "onnx-1.12"),
        ("caffe-2", "unknown release 'caffe-2'", "windowsml"),
    ],
)
def test_what_is_not_known_says_what_is(name: str, reason: str, remedy: str) -> None:
    with pytest.raises(OpshiftError) as caught:
        RELEASES.named(name)
    assert caught.value.reason == reason
    assert remedy in caught.value.remedy


def test_a_folder_may_hold_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "consumers.yaml").write_text(OURS, "utf-8")
    registry = default_registry().with_folder(tmp_path)
    assert registry.releases.named("phone-2").ir_version == 7
    assert registry.releases.named("tensorrt-8.6").opsets == {"ai.onnx": 16}
    assert registry.releases.named("tensorrt-8.5").opsets == {"ai.onnx": 17}
    assert registry.domains() == default_registry().domains()
    assert "phone" not in RELEASES.products


BROKEN = {
    "no source": ('phone: {"1": {opsets: {ai.onnx: 7}}}', "source"),
    "no opsets": ('phone: {"1": {opsets: {}, source: here}}', "opsets"),
    "opset 0": ('phone: {"1": {opsets: {ai.onnx: 0}, source: here}}', "greater than or equal to 1"),
    "a name of ONNX's": ('onnx: {"9": {opsets: {ai.onnx: 7}, source: here}}', "releases.yaml"),
    "no mapping": ("- phone", "consumers"),
}


@pytest.mark.parametrize(("content", "reason"), BROKEN.values(), ids=BROKEN)
def test_a_file_that_is_wrong_is_refused(tmp_path: Path, content: str, reason: str) -> None:
    (tmp_path / "consumers.yaml").write_text(content, "utf-8")
    with pytest.raises(DefinitionError) as caught:
        _ = default_registry().with_folder(tmp_path).releases
    assert reason in caught.value.reason
    assert "consumers.yaml" in str(caught.value.place)
