"""Diagrams of function bodies."""

from opshift.analysis.pages.diagram import MAX_NODES, Box
from opshift.registry.models import OperatorVersion


def body_boxes(version: OperatorVersion) -> list[Box]:
    """Return the inputs, the nodes and the outputs of a function body; nothing if it is too large to draw."""
    if version.body is None or len(version.body.nodes) > MAX_NODES:
        return []
    boxes = [Box(each.name) for each in version.inputs]
    producers = {each.name: position for position, each in enumerate(version.inputs)}
    for node in version.body.nodes:
        values = " ".join(
            f"{name}={list(value) if isinstance(value, tuple) else value}"
            for name, value in node.attributes.items()
        )
        sources = dict.fromkeys(producers[name] for name in node.inputs if name in producers)
        producers.update(dict.fromkeys(node.outputs, len(boxes)))
        boxes.append(Box(f"{node.op_type} {values}".strip(), tuple(sources), "node"))
    produced = [each.name for each in version.outputs if each.name in producers]
    return [*boxes, *(Box(name, (producers[name],), "value") for name in produced)]
