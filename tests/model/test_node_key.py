"""Node keys: equal for nodes that differ only in value names, whatever the names."""

from __future__ import annotations

import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import NodeProto, helper

from opshift.model.errors import InvalidModel
from opshift.model.graphs import read_node_record
from opshift.model.node import serialized_attributes
from opshift.model.node_key import node_key_of, serialize_without_names

NAMES = st.one_of(
    st.just(""),
    st.text("ab\x1a\x22\n", max_size=4),  # includes bytes that are protobuf tags
    st.text(max_size=8),
    st.sampled_from(["n" * length for length in (126, 127, 128, 300)]),
)
ATTRIBUTES = st.fixed_dictionaries(
    {}, optional={"axis": st.integers(-3, 3), "mode": st.sampled_from(["x", "é"]), "pads": st.just([1, 2])}
)

UNKNOWN_FIELD = b"\xc0\x3e\x07"
"""A field that no version of ONNX defines."""


@st.composite
def nodes(draw: st.DrawFn) -> NodeProto:
    result: NodeProto = helper.make_node(
        draw(st.sampled_from(["Relu", "", "Pad" * 50])),
        draw(st.lists(NAMES, max_size=3)),
        draw(st.lists(NAMES, max_size=3)),
        domain=draw(st.sampled_from(["", "com.acme"])),
        doc_string=draw(st.sampled_from(["", "about it"])),
        **draw(ATTRIBUTES),
    )
    if draw(st.booleans()):
        result.name = draw(NAMES)
    if draw(st.booleans()):
        result.MergeFromString(UNKNOWN_FIELD)
    return result


def names_of(node: NodeProto) -> tuple[str, ...]:
    return (*node.input, *node.output)


@pytest.mark.full
@given(nodes())
def test_serializes_nodes_without_names(node: NodeProto) -> None:
    serialized = serialize_without_names(node, names_of(node))
    bare = NodeProto()
    bare.CopyFrom(node)
    for field in ("input", "output", "name"):
        bare.ClearField(field)
    if serialized is None:
        texts = (*names_of(node), node.name)
        assert not "".join(texts).isascii() or len(node.name) > 127
    else:
        assert serialized == bare.SerializeToString()


@given(nodes(), nodes())
def test_keys_are_equal_if_operators_and_attributes_are(node: NodeProto, other: NodeProto) -> None:
    first, second = (node_key_of(read_node_record(0, each), each)[0] for each in (node, other))
    is_equal = (node.op_type, node.domain, *serialized_attributes(node)) == (
        other.op_type,
        other.domain,
        *serialized_attributes(other),
    )
    assert (first == second) == is_equal


def test_names_cannot_forge_a_key() -> None:
    plain = helper.make_node("Softmax", ["x"], ["y"], axis=1)
    rest = serialize_without_names(plain, ("x", "y"))
    assert rest is not None
    hostile = helper.make_node("Softmax", ["x"], ["y" + rest.decode("latin-1")[:10]], axis=2)
    hostile_key, key = (node_key_of(read_node_record(0, each), each) for each in (hostile, plain))
    assert hostile_key != key


def test_rejects_names_that_are_not_utf8() -> None:
    with pytest.raises(InvalidModel, match="UTF-8"):
        serialize_without_names(onnx.NodeProto(), (b"\xff",))  # type: ignore[arg-type]
