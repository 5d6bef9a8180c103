"""Removal of messages from repeated fields."""

from __future__ import annotations

import onnx
import pytest

from opshift.model.graphs import remove_messages


@pytest.mark.parametrize(
    "flags",
    [
        pytest.param("", id="empty"),
        pytest.param("000", id="none"),
        pytest.param("111", id="all"),
        pytest.param("0111", id="last"),
        pytest.param("1101", id="two runs"),
        pytest.param("10" * 20 + "011", id="many runs"),
        pytest.param("01" * 20 + "0", id="many runs before the last"),
    ],
)
def test_removes_messages(flags: str) -> None:
    is_removed = [each == "1" for each in flags]
    graph = onnx.GraphProto(input=[onnx.ValueInfoProto(name=str(each)) for each in range(len(flags))])
    remove_messages(graph.input, is_removed)
    assert [each.name for each in graph.input] == [
        str(position) for position, removed in enumerate(is_removed) if not removed
    ]
