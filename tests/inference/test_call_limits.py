"""Limits on calls of local functions: facts within them, and errors that name them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from support.calls import INT as INTEGER
from support.calls import call, function, model, node

from opshift.analysis.infer import infer
from opshift.model.errors import InvalidModel
from opshift.runtimes import called_functions

if TYPE_CHECKING:
    import onnx


def layers(count: int, size: int, *nodes: onnx.NodeProto) -> onnx.ModelProto:
    """Return a model with calls of a function with `size` nodes, each call with another bias.

    Each Softmax between the calls depends on the shape of the result. `nodes` call the function `G`.
    """
    body = [node("Add", ["a", "w"], ["v1"])]
    body += [node("Relu", [f"v{number}"], [f"v{number + 1}"]) for number in range(1, size - 1)]
    body.append(node("Identity", [f"v{size - 1}"], ["b"]))
    found, value = list(nodes), "x"
    for number in range(count):
        found += [
            call("L", [value, f"w{number}"], [f"h{number}"]),
            node("Softmax", [f"h{number}"], [f"s{number}"]),
        ]
        found[-1].attribute.add(name="axis", i=1, type=INTEGER)
        value = f"s{number}"
    functions = [function("L", body, 13, inputs=("a", "w"))]
    if nodes:
        functions.append(
            function("G", [node("Softmax", ["a"], ["t"], axis=0), node("Abs", ["t"], ["b"])], 13)
        )
    weights = {f"w{number}": np.full(4, number, np.float32) for number in range(count)}
    outputs = [value, *(each.output[0] for each in nodes)]
    return model(found, functions, 13, outputs=outputs, initializers=weights)


def test_errors_name_the_limit_that_is_exceeded(monkeypatch: pytest.MonkeyPatch) -> None:
    functions = [function(f"F{number}", [call(f"F{number + 1}", ["a"], ["b"])]) for number in range(41)]
    functions.append(function("F41", [node("Relu", ["a"], ["b"])]))
    with pytest.raises(InvalidModel) as caught:
        infer(model([call("F0", ["x"], ["y"])], functions))
    assert caught.value.reason == "calls of functions are nested more than 40 deep"
    monkeypatch.setattr(called_functions, "MIN_CALLED_NODES", 0)
    monkeypatch.setattr(called_functions, "CALLED_NODES_PER_NODE", 1)
    with pytest.raises(InvalidModel) as caught:
        infer(layers(10, 10))
    assert caught.value.reason == "functions have more than 30 nodes, counted for each call that differs"
