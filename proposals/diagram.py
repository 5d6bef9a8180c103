"""Diagrams of function bodies: Mermaid for Markdown, and SVG for HTML.

Source: https://mermaid.js.org/syntax/flowchart.html, "Entity codes to escape characters".
"""

import html
import re
from collections import defaultdict
from typing import NamedTuple

from opshift.registry.models import OperatorVersion

MAX_NODES = 60
"""Bodies with more nodes have no diagram: it would be too wide to read."""

MAX_LABEL = 32
ROW_HEIGHT, BOX_HEIGHT, CHARACTER_WIDTH, GAP = 64, 28, 7.5, 20


class Box(NamedTuple):
    """Input, output or node of a body, and the positions of the boxes that it reads."""

    label: str
    sources: tuple[int, ...] = ()
    is_node: bool = False


def mermaid(version: OperatorVersion) -> str:
    """Return a fenced Mermaid flowchart of the body, or an empty text if there is none or it is too large."""
    boxes = _boxes(version)
    if not boxes:
        return ""
    lines = ["flowchart TD"]
    for position, box in enumerate(boxes):
        text = re.sub(r"[^\w .=]", lambda match: f"#{ord(match[0])};", box.label)
        lines.append(f'n{position}["{text}"]' if box.is_node else f'n{position}(["{text}"])')
        lines += [f"n{source} --> n{position}" for source in box.sources]
    return "\n".join(["```mermaid", *lines, "```"])


def svg(version: OperatorVersion) -> str:
    """Return an SVG drawing of the body, or an empty text if there is none or it is too large."""
    boxes = _boxes(version)
    centers = _centers(boxes)
    half_widths = [len(box.label) * CHARACTER_WIDTH / 2 + 8 for box in boxes]
    lines: list[str] = []
    for position, box in enumerate(boxes):
        (x, y), half = centers[position], half_widths[position]
        for source in box.sources:
            start_x, start_y = centers[source][0], centers[source][1] + BOX_HEIGHT / 2
            end_y, bend = y - BOX_HEIGHT / 2, ROW_HEIGHT / 3
            curve = f"C{start_x:g} {start_y + bend:g} {x:g} {end_y - bend:g} {x:g} {end_y:g}"
            # Lines come first, so that boxes cover them.
            lines.insert(0, f'<path d="M{start_x:g} {start_y:g}{curve}" marker-end="url(#arrow)"/>')
        radius = 3 if box.is_node else BOX_HEIGHT / 2
        place = f'x="{x - half:g}" y="{y - BOX_HEIGHT / 2:g}" width="{2 * half:g}" height="{BOX_HEIGHT}"'
        lines.append(
            f'<rect {place} rx="{radius:g}"/><text x="{x:g}" y="{y:g}">{html.escape(box.label)}</text>'
        )
    if not lines:
        return ""
    width = max(x + half for (x, _), half in zip(centers, half_widths, strict=True)) + GAP
    height = max(y for _, y in centers) + ROW_HEIGHT / 2
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="Diagram of the function body"'
        f' viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}">'
        '<defs><marker id="arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8"'
        f' orient="auto"><path class="head" d="M0 0L8 4L0 8z"/></marker></defs>{"".join(lines)}</svg>'
    )


def _boxes(version: OperatorVersion) -> list[Box]:
    """Return the inputs, the nodes and the outputs: every box follows those that it reads."""
    if version.body is None or len(version.body.nodes) > MAX_NODES:
        return []
    boxes = [Box(_label(each.name)) for each in version.inputs]
    producers = {each.name: position for position, each in enumerate(version.inputs)}
    for node in version.body.nodes:
        values = " ".join(f"{name}={value}" for name, value in node.attributes.items())
        sources = dict.fromkeys(producers[name] for name in node.inputs if name in producers)
        producers.update(dict.fromkeys(node.outputs, len(boxes)))
        boxes.append(Box(_label(f"{node.op_type} {values}".strip()), tuple(sources), is_node=True))
    produced = [each.name for each in version.outputs if each.name in producers]
    return [*boxes, *(Box(_label(name), (producers[name],)) for name in produced)]


def _label(text: str) -> str:
    printable = "".join(each if each.isprintable() else "?" for each in text)
    return printable if len(printable) <= MAX_LABEL else f"{printable[:MAX_LABEL]}..."


def _centers(boxes: list[Box]) -> list[tuple[float, float]]:
    """Return the center of each box: below all boxes that it reads, near their mean."""
    rows: list[int] = []
    for box in boxes:
        rows.append(max((rows[source] + 1 for source in box.sources), default=0))
    for position in reversed(range(len(boxes))):
        readers = [rows[other] for other, box in enumerate(boxes) if position in box.sources]
        if boxes[position].is_node and not boxes[position].sources and readers:
            rows[position] = min(readers) - 1  # a constant, next to its first reader
    members: dict[int, list[int]] = defaultdict(list)
    for position, row in enumerate(rows):
        members[row].append(position)
    widths = {row: sum(_width(boxes[each]) for each in listed) for row, listed in members.items()}
    centers = [(0.0, 0.0)] * len(boxes)
    for row in sorted(members):
        # Sorted by the mean of their sources, so that few lines cross.
        placed = sorted(
            members[row], key=lambda each: _mean([centers[one][0] for one in boxes[each].sources])
        )
        x = GAP + (max(widths.values()) - widths[row]) / 2
        for position in placed:
            width = _width(boxes[position])
            centers[position] = (x + width / 2, (row + 0.5) * ROW_HEIGHT)
            x += width
    return centers


def _width(box: Box) -> float:
    return len(box.label) * CHARACTER_WIDTH + 16 + GAP


def _mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else 0.0
