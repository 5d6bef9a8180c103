"""GroupQueryAttention of com.microsoft computes the same as standard operators."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import onnx
import pytest
from onnx import helper
from support.com_microsoft import NodeCase, assert_inferred, case, model_of, without_microsoft
from support.execution import Array, assert_equal, run
from support.forms import RANKED_FORMS

from opshift import ConversionRefused

f = np.float32
POSITIONS = 64


class Sequences(NamedTuple):
    """A node, and the number of keys of each batch entry: the rest of a result is arbitrary."""

    node: NodeCase
    lengths: list[int]


def _sequences(
    *,
    new: int = 4,
    appended: int | None = None,
    presents: bool = True,
    heads: int = 4,
    shared: int = 2,
    size: int = 16,
    capacity: int = 0,
    lengths: tuple[int, ...] = (),
    rotate: bool = False,
    pairs: int = 0,
    packed: bool = False,
    positions: bool = False,
    added: tuple[int, ...] = (),
    sink: bool = False,
    normalize: bool = False,
    scores: int = 0,
    element_type: Any = f,
    **attributes: Any,
) -> Sequences:
    """Return a node; `appended` is the length of `key`, by default that of `query`."""
    random = np.random.default_rng(new + capacity)
    totals = list(lengths) or [new, new]
    batch, total = len(totals), max(totals)
    angles = random.normal(size=(POSITIONS, pairs or size // 2))

    def floats(*shape: int) -> Array:
        return random.normal(size=shape).astype(element_type)

    key_shape = (batch, new if appended is None else appended, shared * size)
    keys = [None, None] if packed else [floats(*key_shape) for _ in range(2)]
    caches = [floats(batch, shared, capacity, size) if capacity else None for _ in range(2)]
    tables = [np.cos(angles).astype(element_type), np.sin(angles).astype(element_type)]
    if scores:
        attributes["qk_output"] = scores
    node = case(
        "GroupQueryAttention",
        floats(batch, new, (heads + 2 * shared if packed else heads) * size),
        *keys,
        *caches,
        np.array([length - 1 for length in totals], np.int32),
        np.array(total, np.int32),
        *(tables if rotate else [None, None]),
        random.integers(0, POSITIONS, (batch, new)) if positions else None,
        floats(*added, new, total) if added else None,
        floats(heads) if sink else None,
        *([None, None, floats(size), floats(size)] if normalize else []),
        outputs=[element_type] * (4 if scores else 3 if presents else 1),
        num_heads=heads,
        kv_num_heads=shared,
        do_rotary=int(rotate),
        **attributes,
    )
    return Sequences(node, totals)


SINGLE: dict[str, Any] = {"new": 1, "capacity": 12, "lengths": (6, 3)}
SHARED: dict[str, Any] = {"new": 1, "appended": 0, "lengths": (6, 3)}
"""Arguments for a node that reads the cache of another node."""

CASES = {
    "prompt": _sequences(),
    "padded prompt": _sequences(lengths=(4, 3)),
    "packed": _sequences(packed=True),
    "rotated": _sequences(rotate=True),
    "rotated padded prompt": _sequences(rotate=True, lengths=(4, 2)),
    "rotated packed": _sequences(rotate=True, packed=True),
    "rotated neighbours": _sequences(rotate=True, rotary_interleaved=1),
    "rotated part": _sequences(rotate=True, size=32, pairs=8),
    "full cache": _sequences(new=1, capacity=5, lengths=(6, 6)),
    "cache of other lengths": _sequences(new=1, capacity=5, lengths=(6, 3)),
    "large cache": _sequences(rotate=True, **SINGLE),
    "prompt with cache": _sequences(rotate=True, capacity=12, lengths=(4, 3)),
    "later prompt": _sequences(rotate=True, new=3, capacity=12, lengths=(9,)),
    "later packed prompt": _sequences(rotate=True, packed=True, new=3, capacity=6, lengths=(9,)),
    "shared cache": _sequences(capacity=6, **SHARED),
    "large shared cache": _sequences(capacity=9, **SHARED),
    "rotated shared cache": _sequences(capacity=9, rotate=True, positions=True, **SHARED),
    "window of a shared cache": _sequences(capacity=9, local_window_size=2, **SHARED),
    "shared cache of a prompt": _sequences(rotate=True, new=3, appended=0, capacity=9, lengths=(8,)),
    "no groups": _sequences(shared=4),
    "one group": _sequences(heads=6, shared=1),
    "bound": _sequences(softcap=5.0),
    "scale": _sequences(scale=0.3),
    "window": _sequences(local_window_size=2),
    "window of one": _sequences(local_window_size=1),
    "window of a cache": _sequences(new=1, capacity=8, lengths=(7, 4), local_window_size=3),
    "smooth": _sequences(smooth_softmax=1),
    "not smooth": _sequences(smooth_softmax=0),
    "sink": _sequences(sink=True),
    "sink, window, bound": _sequences(sink=True, local_window_size=2, softcap=3.0),
    "added": _sequences(added=(2, 4)),
    "added to all": _sequences(added=(1, 1), softcap=2.0),
    "added with a cache": _sequences(added=(1, 4), **SINGLE),
    "scores": _sequences(scores=1),
    "weights": _sequences(scores=2),
    "bounded scores": _sequences(scores=1, softcap=2.0, added=(1, 1), local_window_size=3),
    "scores of a cache": _sequences(scores=1, **SINGLE),
    "positions of a prompt": _sequences(rotate=True, positions=True),
    "positions": _sequences(rotate=True, positions=True, **SINGLE),
    "positions of a later prompt": _sequences(rotate=True, positions=True, new=3, capacity=12, lengths=(9,)),
    "not causal": _sequences(causal=0),
    "not causal with a cache": _sequences(causal=0, **SINGLE),
    "half": _sequences(element_type=np.float16),
    "half with a cache": _sequences(element_type=np.float16, rotate=True, **SINGLE),
    "half, sink, window, bound": _sequences(
        element_type=np.float16, softcap=3.0, local_window_size=2, sink=True
    ),
}


def _without_padding(results: list[Array], given: Sequences) -> list[Array]:
    """Return the results with zeros where kernels leave arbitrary values."""
    new = given.node.inputs[0]
    assert new is not None
    cleared = [each.copy() for each in results]
    for entry, length in enumerate(given.lengths):
        if new.shape[1] >= length:
            cleared[0][entry, length:] = 0
            if len(cleared) > 3:
                cleared[3][entry, :, length:] = 0
        if len(cleared) > 3:
            cleared[3][entry, :, :, length:] = 0
    return cleared


def _assert_equals_kernel(
    given: Sequences, form: str, opset: int, expected: list[Array] | None = None
) -> None:
    model, feeds = model_of(given.node, form)
    found = run(without_microsoft(model, opset), feeds)
    wanted = run(*model_of(given.node)) if expected is None else expected
    if form in ("fed", "symbolic"):
        assert_inferred(model, wanted, is_required=form == "fed")
    tolerance = 1e-2 if wanted[0].dtype == np.float16 else 5e-5
    assert_equal(_without_padding(found, given), _without_padding(wanted, given), tolerance)


@pytest.mark.parametrize("form", RANKED_FORMS)
@pytest.mark.parametrize("name", CASES)
def test_equals_the_kernel(name: str, form: str) -> None:
    if form == "symbolic" and CASES[name].node.attributes["do_rotary"]:
        pytest.skip("the number of rotated features is an attribute")
    _assert_equals_kernel(CASES[name], form, 17)


@pytest.mark.parametrize("opset", [11, 13, 21, 25])
@pytest.mark.parametrize("name", ["rotated", "large cache", "sink, window, bound", "bounded scores"])
def test_equals_the_kernel_at_other_opsets(name: str, opset: int) -> None:
    _assert_equals_kernel(CASES[name], "fed", opset)


@pytest.mark.parametrize("packed", [False, True])
def test_normalizes_queries_and_keys(packed: bool) -> None:
    """The CPU kernel has no normalization: compare with normalized queries and keys."""
    given = _sequences(normalize=True, packed=packed, rotate=True, qk_norm_epsilon=0.1)
    *inputs, query_weight, key_weight = given.node.inputs
    plain = given.node._replace(inputs=inputs)
    if packed:
        query, key, value = np.split(np.asarray(inputs[0]), [64, 96], axis=2)
    else:
        query, key, value = (np.asarray(each) for each in inputs[:3])
    parts: list[Array | None] = [_normalized(query, query_weight), _normalized(key, key_weight), value]
    if packed:
        parts = [np.concatenate([each for each in parts if each is not None], axis=2), None, None]
    plain = plain._replace(inputs=[*parts, *inputs[3:]])
    attributes = {key: each for key, each in plain.attributes.items() if key != "qk_norm_epsilon"}
    _assert_equals_kernel(given, "fed", 17, run(*model_of(plain._replace(attributes=attributes))))


def _normalized(value: Array, weight: Any) -> Array:
    heads = value.reshape(*value.shape[:2], -1, 16)
    root = np.sqrt((heads**2).mean(-1, keepdims=True) + 0.1)
    return np.asarray(heads / root * weight, f).reshape(value.shape)


def test_reads_lengths_that_a_model_computes() -> None:
    """Builders of language models compute lengths from a mask."""
    given = CASES["large cache"]
    model, feeds = model_of(given.node)
    nodes = [
        helper.make_node("ReduceSum", ["mask", "axis"], ["sums"], keepdims=0),
        helper.make_node("Sub", ["sums", "one"], ["lasts"]),
        helper.make_node("Cast", ["lasts"], ["x5"], to=onnx.TensorProto.INT32),
        helper.make_node("Shape", ["mask"], ["sizes"]),
        helper.make_node("Gather", ["sizes", "one"], ["total"]),
        helper.make_node("Cast", ["total"], ["x6"], to=onnx.TensorProto.INT32),
    ]
    for index, node in enumerate(nodes):
        model.graph.node.insert(index, node)
    for name, values in (("axis", np.array([1])), ("one", np.array(1))):
        model.graph.initializer.append(onnx.numpy_helper.from_array(values, name))
    kept = [each for each in model.graph.input if each.name not in ("x5", "x6")]
    mask = helper.make_tensor_value_info("mask", onnx.TensorProto.INT64, ["batch", "total"])
    del model.graph.input[:]
    model.graph.input.extend([*kept, mask])
    fed = {name: each for name, each in feeds.items() if name not in ("x5", "x6")}
    fed["mask"] = np.array([[1] * length + [0] * (6 - length) for length in given.lengths])
    assert_equal(run(without_microsoft(model, 17), fed), run(model, fed), 5e-5)


@pytest.mark.parametrize("form", ["fed", "initializer", "branch"])
def test_a_shared_cache_needs_no_present(form: str) -> None:
    _assert_equals_kernel(_sequences(capacity=9, presents=False, **SHARED), form, 17)


def test_an_empty_cache_needs_no_present() -> None:
    given = _sequences(presents=False).node
    empty = np.zeros((2, 2, 0, 16), f)
    inputs = [*given.inputs[:3], empty, empty, *given.inputs[5:]]
    _assert_equals_kernel(Sequences(given._replace(inputs=inputs), [4, 4]), "fed", 17)


REFUSED = {
    "k_quant_type is b'PER_TENSOR'": _sequences(k_quant_type="PER_TENSOR"),
    "sliding_window_cache is 1": _sequences(sliding_window_cache=1),
    "local_window_size is 0": _sequences(local_window_size=0),
    "without the output present_key": _sequences(presents=False, **SINGLE),
    "without the output present_value": Sequences(
        _sequences(capacity=9, **SHARED).node._replace(outputs=[f, f]), []
    ),
}


@pytest.mark.parametrize("reason", REFUSED)
def test_refuses_caches_that_kernels_handle_differently(reason: str) -> None:
    with pytest.raises(ConversionRefused, match=reason):
        without_microsoft(model_of(REFUSED[reason].node)[0], 17)


def test_refuses_an_unknown_number_of_pairs() -> None:
    with pytest.raises(ConversionRefused, match="is unknown"):
        without_microsoft(model_of(CASES["rotated"].node, "symbolic")[0], 17)
