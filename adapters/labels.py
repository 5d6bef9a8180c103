"""LabelEncoder, upgrade: keys and values replaced the list of classes in version 2."""

from __future__ import annotations

from opshift.adapters.node import Node
from opshift.adapters.refusal import CannotConvert
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.table import adapter


@adapter("LabelEncoder", 1, 2, domain="ai.onnx.ml")
def places_are_written_out(node: Node, out: Rewriter) -> None:
    """Write the classes and their indices as keys and values.

    In version 1 the type of the input determines the direction, since version 2 the two lists do. The
    defaults are the same.
    """
    classes = node.attribute("classes_strings", ())
    if not classes:
        raise CannotConvert("classes_strings is missing", remedy="list the classes in classes_strings")
    kept = node.without("classes_strings")
    if out.element_type(node.inputs[0]) == "string":
        # A repeated class has its last index. Runtimes disagree about repeated keys, so write each key once.
        indices = {name: index for index, name in enumerate(classes)}
        lists = {"keys_strings": [*indices], "values_int64s": [*indices.values()]}
    else:
        lists = {"keys_int64s": [*range(len(classes))], "values_strings": [*classes]}
    out.become(node, attributes={**kept, **lists})
