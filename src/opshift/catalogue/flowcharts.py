"""Mermaid flowcharts in pages of the documentation.

Source: https://mermaid.js.org/syntax/flowchart.html.
"""

import re
from typing import Final

from opshift.analysis.pages.diagram import Box

NODE: Final = r'(\w+)(?:[\[{]"([^"]*)"[\]}])?'

STATEMENT: Final = re.compile(rf"{NODE}(?:\s*-->(?:\|([^|]*)\|)?\s*{NODE})?")
"""A node, or a line between two nodes with or without text."""


def read_flowchart(text: str) -> list[Box]:
    """Return the boxes of a flowchart of nodes and lines, in the order in which it mentions them.

    Raises:
        ValueError: the chart has a statement that is neither.
    """
    boxes: dict[str, Box] = {}
    head, *statements = filter(None, map(str.strip, text.splitlines()))
    if head != "flowchart TD":
        raise ValueError(f"expected a flowchart from top to bottom, got {head}")
    for statement in statements:
        if not (found := STATEMENT.fullmatch(statement)):
            raise ValueError(f"expected a node or a line between two nodes, got {statement}")
        source, source_label, note, target, target_label = found.groups()
        for name, label in (source, source_label), (target, target_label):
            if name and (label or name not in boxes):
                first, _, second = (label or name).partition("<br>")
                box = boxes.get(name, Box("", kind="node"))
                boxes[name] = box._replace(label=first, detail=second)
        if target:
            box = boxes[target]
            position = list(boxes).index(source)
            boxes[target] = box._replace(sources=(*box.sources, position), notes=(*box.notes, note or ""))
    return list(boxes.values())
