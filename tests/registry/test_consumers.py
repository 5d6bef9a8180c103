"""`consumers.yaml`: opsets of inference programs other than onnxruntime, bundled or added by a user."""

from __future__ import annotations

from itertools import chain
from pathlib import Path

import pytest

from opshift.model.errors import OpshiftError
from opshift.registry.errors import DefinitionError
from opshift.registry.ir_versions import ir_versions
from opshift.registry.registry import default_registry
from opshift.registry.releases import OTHER_PRODUCTS, Consumer
from opshift.registry.runtimes.files import get_runtime, runtime_files

RELEASES = default_registry().releases
CONSUMERS = [
    pytest.param(each, id=f"{product}-{version}")
    for product, versions in RELEASES.consumers.items()
    for version, each in versions.items()
]
USER_FILE = """
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
OPSETS = "opsets: {ai.onnx: 9}, source: tried"


@pytest.mark.parametrize("consumer", CONSUMERS)
def test_a_consumer_names_its_source_and_existing_versions(consumer: Consumer) -> None:
    assert consumer.source.startswith("https://")
    for domain, opset in consumer.opsets.items():
        assert 1 <= opset <= default_registry().newest_opset(domain)
    assert consumer.ir_version in (None, *ir_versions().versions)


def test_lists_the_products_of_both_files() -> None:
    assert list(RELEASES.products)[:2] == ["onnx", "onnxruntime"]
    assert {"tensorrt", "openvino", "windowsml", "sentis", "rknn"} <= set(RELEASES.products)


@pytest.mark.parametrize(
    ("name", "opset", "ir_version"),
    [
        ("tensorrt-8.6", 17, None),
        ("tensorrt-8.6.1.6", 17, None),
        ("tensorrt-10.1", 20, None),
        ("tensorrt-10.14.1", 24, None),
        ("tensorrt-11.5", 25, None),
        ("openvino-2024.4.1", 20, None),
        ("winml-2.3.42", 26, 13),
        ("onnxruntime-web-1.20.1", 21, 10),
        ("onnxruntime-gpu-1.32", 28, 14),
        ("onnxruntime-mobile-1.11", 15, None),
        ("migraphx-2.15.0", 19, None),
        ("onnx-mlir-0.5.0.1", 22, None),
        ("windowsml-1809", 7, 3),
        ("rknn-1.6", 19, None),
        ("qairt-2.39", 22, None),
        ("qnn-2.35", 21, None),
        ("snpe-2.35.0", 21, None),
        ("horizon-1", 11, None),
        ("coremltools-4.0", 10, None),
    ],
)
def test_finds_a_consumer_by_name(name: str, opset: int, ir_version: int | None) -> None:
    found = RELEASES.named(name)
    assert (found.opsets["ai.onnx"], found.ir_version) == (opset, ir_version)


@pytest.mark.parametrize(
    ("name", "reason", "remedy"),
    [
        ("tensorrt-8.3", "unknown version '8.3' of tensorrt", "8.5"),
        ("tensorrt", "'tensorrt' has no version", "add a version: 5.1, "),
        ("onnxruntim-1.14", "unknown release 'onnxruntim-1.14'", "did you mean onnxruntime-1.14 or "),
        ("opset13", "unknown release 'opset13'", "did you mean 13?"),
        ("v17", "unknown release 'v17'", "did you mean 17?"),
        ("17.0", "unknown release '17.0'", "did you mean 17?"),
        ("", "unknown release ''", "give an opset such as 17, or a release"),
        ("onnxruntime-web", "'onnxruntime-web' has no version", "add a version: 1.0, "),
        ("onnxruntime-web-0.1", "unknown version '0.1' of onnxruntime-web", "1.20"),
        ("tensort-10", "unknown release 'tensort-10'", "did you mean tensorrt-10.0?"),
        ("tensort", "unknown release 'tensort'", "did you mean tensorrt-11.5?"),
        ("TensorRT 10.7", "unknown release 'TensorRT 10.7'", "did you mean tensorrt-10.6?"),
        ("tensorrt_v10.7.1", "unknown release 'tensorrt_v10.7.1'", "did you mean tensorrt-10.6?"),
        ("opnvino-2024", "unknown release 'opnvino-2024'", "did you mean openvino-2024.0?"),
        ("rkn-2.3.2", "unknown release 'rkn-2.3.2'", "did you mean rknn-1.6?"),
        ("x2padle-1.5", "unknown release 'x2padle-1.5'", "did you mean x2paddle-1.5?"),
        (
            "onxruntime-web-1.20",
            "unknown release 'onxruntime-web-1.20'",
            "did you mean onnxruntime-web-1.20 ",
        ),
        (
            "ncnn-2025",
            "ncnn does not document its newest opset",
            "advise pnnx in place of onnx2ncnn (https://",
        ),
        ("tvm-0.18", "tvm does not document its newest opset", "pass the opset in its error"),
        (
            "tensorflow-lite",
            "litert does not document its newest opset",
            "onnx2tf converts them to it (https://",
        ),
        (
            "onnx2tf",
            "onnx2tf does not document its newest opset",
            "it lists operators, not opsets (https://",
        ),
        ("opencv4.8", "opencv does not document its newest opset", "asks for opset 11 (https://"),
        ("cv2", "opencv does not document its newest opset", "asks for opset 11 (https://"),
        ("trt-8.6", "unknown release 'trt-8.6'", "did you mean tensorrt-8.6?"),
        ("Windows ML", "unknown release 'Windows ML'", "did you mean windowsml-11 or "),
        ("winml-1903", "unknown release 'winml-1903'", "did you mean windowsml-1903?"),
        (
            "burn-0.15",
            "unknown version '0.15' of burn",
            "known versions: 0.21; for an older version, give its opset",
        ),
        ("rknn", "'rknn' has no version", "add a version: 1.5, 1.6"),
        ("Hailo 3.30", "hailo does not document its newest opset", "--target 11"),
        ("caffe-2", "unknown release 'caffe-2'", "windowsml"),
    ],
)
def test_the_error_for_an_unknown_name_lists_known_names(name: str, reason: str, remedy: str) -> None:
    with pytest.raises(OpshiftError) as caught:
        RELEASES.named(name)
    assert caught.value.reason == reason
    assert remedy in caught.value.remedy


def test_a_user_folder_may_define_consumers_only(tmp_path: Path) -> None:
    (tmp_path / "consumers.yaml").write_text(USER_FILE, "utf-8")
    registry = default_registry().with_folder(tmp_path)
    assert registry.releases.named("phone-2").ir_version == 7
    assert registry.releases.named("tensorrt-8.6").opsets == {"ai.onnx": 16}
    assert registry.releases.named("tensorrt-8.5").opsets == {"ai.onnx": 17}
    assert registry.domains() == default_registry().domains()
    assert "phone" not in RELEASES.products


def test_all_products_have_a_group_and_variants_exist() -> None:
    groups = RELEASES.grouped_products()
    assert list(groups) == list(RELEASES.groups)
    assert sorted(chain.from_iterable(groups.values())) == sorted(RELEASES.products)
    assert set(RELEASES.variants.values()) <= set(RELEASES.products)
    assert not {*RELEASES.variants, *RELEASES.undocumented} & set(RELEASES.products)
    for fact in RELEASES.undocumented.values():
        assert "(https://" in fact


def test_other_names_mean_something_that_exists() -> None:
    known = {*RELEASES.products, *RELEASES.variants, *RELEASES.undocumented}
    for name, meaning in RELEASES.other_names.items():
        assert name == name.lower()
        assert name not in known
        assert meaning in known or RELEASES.find(meaning)


@pytest.mark.parametrize(("name", "runtime"), RELEASES.runtime_names.items())
def test_names_of_providers_are_those_of_runtimes(name: str, runtime: str) -> None:
    assert name not in {each.rpartition("-")[0] for each in runtime_files()}
    assert get_runtime(name) is get_runtime(runtime)
    version = get_runtime(runtime).version
    assert get_runtime(f"{name}-{version}") is get_runtime(f"{runtime}-{version}")


def test_a_user_folder_may_define_products_without_a_group(tmp_path: Path) -> None:
    (tmp_path / "consumers.yaml").write_text(
        f"{USER_FILE}onnxruntime-web: {{'1.20': {{{OPSETS}}}}}\n", "utf-8"
    )
    releases = default_registry().with_folder(tmp_path).releases
    assert releases.grouped_products()[OTHER_PRODUCTS] == ["phone", "onnxruntime-web"]
    assert releases.named("onnxruntime-web-1.20").opsets == {"ai.onnx": 9}


INVALID = {
    "no source": ('phone: {"1": {opsets: {ai.onnx: 7}}}', "source"),
    "no opsets": ('phone: {"1": {opsets: {}, source: here}}', "opsets"),
    "opset 0": ('phone: {"1": {opsets: {ai.onnx: 0}, source: here}}', "expected 1 or more"),
    "a product name reserved for ONNX": (
        'onnx: {"9": {opsets: {ai.onnx: 7}, source: here}}',
        "releases.yaml",
    ),
    "a list": ("- phone", "expected a mapping"),
}


@pytest.mark.parametrize(("content", "reason"), INVALID.values(), ids=INVALID)
def test_refuses_an_invalid_file(tmp_path: Path, content: str, reason: str) -> None:
    (tmp_path / "consumers.yaml").write_text(content, "utf-8")
    with pytest.raises(DefinitionError) as caught:
        _ = default_registry().with_folder(tmp_path).releases
    assert reason in caught.value.reason
    assert str(caught.value.place) == str(tmp_path / "consumers.yaml:1")


def test_errors_have_the_line_of_the_key(tmp_path: Path) -> None:
    (tmp_path / "consumers.yaml").write_text('phone:\n  "1":\n    opsets: {ai.onnx: 0}\n    source: here\n')
    with pytest.raises(DefinitionError, match=r"phone\.1\.opsets\.ai\.onnx: ") as caught:
        _ = default_registry().with_folder(tmp_path).releases
    assert caught.value.place.line == 3


def test_targets_agree_with_the_runtimes_of_the_same_name() -> None:
    compared = 0
    for name in runtime_files():
        if name.rpartition("-")[0] in RELEASES.consumers:
            try:
                consumer = RELEASES.named(name)
            except OpshiftError:  # only the files of runtimes have this version
                continue
            assert consumer.opsets["ai.onnx"] == get_runtime(name).opsets["ai.onnx"], name
            compared += 1
    assert compared >= 5
