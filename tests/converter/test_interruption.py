"""An interrupted conversion in place leaves the old or the new model."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from typing import Any

import onnx
import pytest
from onnx import TensorProto, helper

from opshift.converter import apply, convert
from opshift.converter.convert import convert_version
from opshift.converter.plan.planner import plan_model

COUNT = 50


@pytest.fixture(autouse=True)
def _alarm() -> Iterator[None]:
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    yield
    signal.signal(signal.SIGALRM, before)


def _model() -> onnx.ModelProto:
    names = ["x", *(f"v{i}" for i in range(COUNT))]
    nodes = [helper.make_node("Softmax", [names[i]], [names[i + 1]], axis=1) for i in range(COUNT)]
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes, "g", [value("x", TensorProto.FLOAT, [2, 3])], [value(names[-1], TensorProto.FLOAT, [2, 3])]
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 9)], ir_version=4)


def _interrupting(function: Callable[..., object], number: signal.Signals) -> Callable[..., object]:
    def interrupt(*arguments: object, **named: object) -> object:
        result = function(*arguments, **named)
        signal.raise_signal(number)
        return result

    return interrupt


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGALRM])
@pytest.mark.parametrize("options", [{}, {"check": True}, {"reversible": True}], ids=str)
@pytest.mark.parametrize("name", ["_remove_leftovers", "_apply_container", "_update_imports"])
def test_interruption_of_conversion_in_place(
    name: str, options: Any, number: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = _model()
    before, after = _model(), convert_version(_model(), 13, **options)
    monkeypatch.setattr(apply, name, _interrupting(getattr(apply, name), number))
    with pytest.raises(KeyboardInterrupt):
        convert_version(model, 13, inplace=True, **options)
    assert model in (before, after)


def test_interruption_before_applying_keeps_model(monkeypatch: pytest.MonkeyPatch) -> None:
    model = _model()
    monkeypatch.setattr(convert, "plan_model", _interrupting(plan_model, signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        convert_version(model, 13, inplace=True)
    assert model == _model()
