"""Diagrams of nodes and values: Mermaid for Markdown, and SVG for HTML.

Source: https://mermaid.js.org/syntax/flowchart.html, "Entity codes to escape characters".
"""

import html
import re
from collections import defaultdict
from collections.abc import Sequence
from typing import Literal, NamedTuple

MAX_NODES = 60
"""A diagram of more nodes would be too wide to read."""

MAX_LABEL = 32
ROW_HEIGHT, BOX_HEIGHT, CHARACTER_WIDTH, GAP = 64, 28, 7.5, 20


BoxKind = Literal["input", "value", "node", "added", "removed", "changed"]


class Box(NamedTuple):
    """Value or node, and the positions of the earlier boxes that it reads."""

    label: str
    sources: tuple[int, ...] = ()
    kind: BoxKind = "input"
    """The first row of a diagram shows inputs; others without sources are above their first reader."""

    @property
    def is_node(self) -> bool:
        """Whether the box shows a node."""
        return self.kind not in ("input", "value")


def mermaid(boxes: Sequence[Box], caption: str = "") -> str:
    """Return a fenced Mermaid flowchart; an empty text without boxes."""
    if not boxes:
        return ""
    lines = ["---", f"title: {caption}", "---"] if caption else []
    lines.append("flowchart TD")
    for position, box in enumerate(boxes):
        text = re.sub(r"[^\w .=]", lambda match: f"#{ord(match[0])};", _label(box.label))
        lines.append(f'n{position}["{text}"]' if box.is_node else f'n{position}(["{text}"])')
        lines += [f"n{source} --> n{position}" for source in box.sources]
    return "\n".join(["```mermaid", *lines, "```"])


def svg(boxes: Sequence[Box], caption: str) -> str:
    """Return an SVG drawing for `Document`; an empty text without boxes."""
    if not boxes:
        return ""
    centers = _centers(boxes)
    half_widths = [_width(box) / 2 for box in boxes]
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
        text = html.escape(_label(box.label))
        shape = f'<rect {place} rx="{radius:g}"/><text x="{x:g}" y="{y:g}">{text}</text>'
        lines.append(f'<g class="{box.kind}">{shape}</g>')
    width = max(x + half for (x, _), half in zip(centers, half_widths, strict=True)) + GAP
    height = max(y for _, y in centers) + ROW_HEIGHT / 2
    return (
        f'<figure tabindex="0"><figcaption>{caption}</figcaption>'
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{caption}"'
        f' viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}">{"".join(lines)}</svg>'
        "</figure>"
    )


def _label(text: str) -> str:
    printable = "".join(each if each.isprintable() else "?" for each in text)
    return printable if len(printable) <= MAX_LABEL else f"{printable[:MAX_LABEL]}..."


def _centers(boxes: Sequence[Box]) -> list[tuple[float, float]]:
    """Return the center of each box: below all boxes that it reads, near their mean."""
    rows: list[int] = []
    for box in boxes:
        rows.append(max((rows[source] + 1 for source in box.sources), default=0))
    for position in reversed(range(len(boxes))):
        readers = [rows[other] for other, box in enumerate(boxes) if position in box.sources]
        if boxes[position].kind != "input" and not boxes[position].sources and readers:
            rows[position] = min(readers) - 1
    members: dict[int, list[int]] = defaultdict(list)
    for position, row in enumerate(rows):
        members[row].append(position)
    widths = {row: sum(_width(boxes[each]) + GAP for each in listed) for row, listed in members.items()}
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
            x += width + GAP
    return centers


def _width(box: Box) -> float:
    return len(_label(box.label)) * CHARACTER_WIDTH + 16


def _mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else 0.0
