"""What nodes say but for names: the same for nodes that differ in names alone, whatever the names."""

from __future__ import annotations

import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import NodeProto, helper

from opshift.model.errors import InvalidModel
from opshift.model.graphs import read_node_record
from opshift.model.node import serialized_attributes
from opshift.model.node_key import operator_key_of, serialize_without_names

NAMES = st.one_of(
    st.just(""),
    st.text("ab\x1a\x22\n", max_size=4),  # bytes that are tags too
    st.text(max_size=8),
    st.sampled_from(["n" * length for length in (126, 127, 128, 300)]),
)
ATTRIBUTES = st.fixed_dictionaries(
    {}, optional={"axis": st.integers(-3, 3), "mode": st.sampled_from(["x", "é"]), "pads": st.just([1, 2])}
)

UNKNOWN = b"\xc0\x3e\x07"
"""A field that no version of ONNX has."""


@st.composite
def nodes(draw: st.DrawFn) -> NodeProto:
    made: NodeProto = helper.make_node(
        draw(st.sampled_from(["Relu", "", "Pad" * 50])),
        draw(st.lists(NAMES, max_size=3)),
        draw(st.lists(NAMES, max_size=3)),
        domain=draw(st.sampled_from(["", "com.acme"])),
        doc_string=draw(st.sampled_from(["", "about it"])),
        **draw(ATTRIBUTES),
    )
    if draw(st.booleans()):
        made.name = draw(NAMES)
    if draw(st.booleans()):
        made.MergeFromString(UNKNOWN)
    return made


def names_of(node: NodeProto) -> tuple[str, ...]:
    return (*node.input, *node.output)


@given(nodes())
def test_what_is_left_without_names_is_the_node_without_them(node: NodeProto) -> None:
    left = serialize_without_names(node, names_of(node))
    bare = NodeProto()
    bare.CopyFrom(node)
    for field in ("input", "output", "name"):
        bare.ClearField(field)
    if left is None:
        texts = (*names_of(node), node.name)
        assert not "".join(texts).isascii() or len(node.name) > 127
    else:
        assert left == bare.SerializeToString()


@given(nodes(), nodes())
def test_nodes_are_alike_if_they_say_the_same(node: NodeProto, other: NodeProto) -> None:
    first, second = (
        operator_key_of(read_node_record(0, each), each, names_of(each)) for each in (node, other)
    )
    same = (node.op_type, node.domain, *serialized_attributes(node)) == (
        other.op_type,
        other.domain,
        *serialized_attributes(other),
    )
    assert (first == second) == same


def test_a_name_that_holds_what_a_node_says_is_a_name() -> None:
    plain = helper.make_node("Softmax", ["x"], ["y"], axis=1)
    rest = serialize_without_names(plain, ("x", "y"))
    assert rest is not None
    hostile = helper.make_node("Softmax", ["x"], ["y" + rest.decode("latin-1")[:10]], axis=2)
    assert operator_key_of(read_node_record(0, hostile), hostile, names_of(hostile)) != operator_key_of(
        read_node_record(0, plain), plain, ("x", "y")
    )


def test_a_name_that_is_no_text_is_told() -> None:
    with pytest.raises(InvalidModel, match="UTF-8"):
        serialize_without_names(onnx.NodeProto(), (b"\xff",))  # type: ignore[arg-type]
