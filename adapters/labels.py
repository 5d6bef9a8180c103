"""LabelEncoder: one list of classes, whose places were the codes, became keys and values at 2."""

from __future__ import annotations

from opshift.adapters.node import Node
from opshift.adapters.refusal import CannotConvert
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.table import adapter


@adapter("LabelEncoder", 1, 2, domain="ai.onnx.ml")
def places_are_written_out(node: Node, out: Rewriter) -> None:
    """The input's type told the direction; the two lists tell it from 2 on, and defaults stay the same."""
    classes = node.attribute("classes_strings", ())
    if not classes:
        raise CannotConvert("classes_strings is not stated", remedy="list the classes")
    kept = node.without("classes_strings")
    if out.element_type(node.inputs[0]) == "string":
        # A class that is listed twice has its last place; runtimes differ on repeated keys.
        places = {name: place for place, name in enumerate(classes)}
        lists = {"keys_strings": [*places], "values_int64s": [*places.values()]}
    else:
        lists = {"keys_int64s": [*range(len(classes))], "values_strings": [*classes]}
    out.become(node, attributes={**kept, **lists})
