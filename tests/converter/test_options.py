"""Validation of the options of a conversion."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest

from opshift.converter.convert import convert, convert_version, plan_version
from opshift.converter.options import ALLOW_VALUES, Options, read_allow
from opshift.converter.streaming.convert_file import convert_file
from opshift.model.errors import UsageError
from opshift.registry.registry import default_registry


def test_reads_one_value_and_several() -> None:
    assert read_allow("approximate") == {"approximate"}
    assert read_allow(ALLOW_VALUES) == set(ALLOW_VALUES)
    assert read_allow(()) == set()


def test_reads_an_iterator() -> None:
    def values() -> Iterator[str]:
        yield "approximate"
        yield "drop-training"

    assert read_allow(values()) == {"approximate", "drop-training"}


@pytest.mark.parametrize(
    ("allow", "reason"),
    [
        ("aproximate", "unknown allow value 'aproximate'; did you mean 'approximate'?"),
        (
            ["approximate", "drop-train"],
            "unknown allow value 'drop-train'; did you mean 'drop-training'?",
        ),
        ("magic", "unknown allow value 'magic'"),
        ("", "unknown allow value ''"),
    ],
)
def test_suggests_a_similar_allow_value(allow: str | list[str], reason: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_allow(allow)
    assert caught.value.reason == reason
    assert caught.value.remedy == (
        "the allowed values are approximate, assume-nonnegative, assume-nonempty, large, drop-metadata, "
        "drop-training, drop-devices"
    )


@pytest.mark.parametrize("function", [convert, convert_version, plan_version])
def test_rejects_options_before_reading_the_model(function: object) -> None:
    assert callable(function)
    with pytest.raises(UsageError, match="did you mean 'approximate'"):
        function("missing.onnx", 17, allow="aproximate")


def test_rejects_options_before_reading_the_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="did you mean 'approximate'"):
        convert_file("missing.onnx", tmp_path / "out.onnx", 17, allow="aproximate")  # type: ignore[arg-type]


def test_options_are_frozen_and_complete() -> None:
    options = Options.of({"": 17}, allow="approximate", ir_version="keep", check=True)
    assert options.target.opsets == {"ai.onnx": 17}
    assert options.target.requested_ir_version == "keep"
    assert options.registry is default_registry()
    assert options.allow == {"approximate"}
    assert (options.check, options.reversible, options.inplace) == (True, False, False)
    with pytest.raises(FrozenInstanceError):
        options.check = False  # type: ignore[misc]
