"""Diagrams of nodes and values: Mermaid for Markdown, and SVG for HTML.

Source: https://mermaid.js.org/syntax/flowchart.html, "Entity codes to escape characters".
"""

import html
import re
from collections import defaultdict
from collections.abc import Sequence
from itertools import chain, pairwise, repeat
from typing import Literal, NamedTuple

MAX_NODES = 60
"""A diagram of more nodes would be too wide to read."""

MAX_LABEL = 32
MAX_CENTERED = 1000
"""Width in which rows are centered; the start of a wider drawing would be empty otherwise."""

ROW_HEIGHT, BOX_HEIGHT, CHARACTER_WIDTH, GAP = 64, 28, 7.5, 20


Point = tuple[float, float]

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
    centers, routes = _layout(boxes)
    half_widths = [_width(box) / 2 for box in boxes]
    # Lines come first, so that boxes cover them.
    lines = [
        f'<path d="{_curve([centers[each] for each in route])}" marker-end="url(#arrow)"/>'
        for route in routes
    ]
    for box, (x, y), half in zip(boxes, centers, half_widths, strict=False):
        radius = 3 if box.is_node else BOX_HEIGHT / 2
        place = f'x="{x - half:g}" y="{y - BOX_HEIGHT / 2:g}" width="{2 * half:g}" height="{BOX_HEIGHT}"'
        text = html.escape(_label(box.label))
        shape = f'<rect {place} rx="{radius:g}"/><text x="{x:g}" y="{y:g}">{text}</text>'
        lines.append(f'<g class="{box.kind}">{shape}</g>')
    # points of lines have no width, and may be to the right of all boxes
    halves = chain(half_widths, repeat(0.0))
    width = max(x + half for (x, _), half in zip(centers, halves, strict=False)) + GAP
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


def _curve(points: Sequence[Point]) -> str:
    """Return the path of a line that passes vertically between the boxes of each row."""
    path, half, bend = "", BOX_HEIGHT / 2, ROW_HEIGHT / 3
    for (x, y), (next_x, next_y) in pairwise(points):
        start, end = y + half, next_y - half
        path += f"{'L' if path else 'M'}{x:g} {start:g}"
        path += f"C{x:g} {start + bend:g} {next_x:g} {end - bend:g} {next_x:g} {end:g}"
    return path


def _rows(boxes: Sequence[Box]) -> list[int]:
    """Return the row of each box: below all boxes that it reads."""
    rows: list[int] = []
    for box in boxes:
        rows.append(max((rows[source] + 1 for source in box.sources), default=0))
    for position in reversed(range(len(boxes))):
        readers = [rows[other] for other, box in enumerate(boxes) if position in box.sources]
        if boxes[position].kind != "input" and not boxes[position].sources and readers:
            rows[position] = min(readers) - 1
    return rows


def _layout(boxes: Sequence[Box]) -> tuple[list[Point], list[list[int]]]:
    """Return the centers of the boxes and of points in lines, and the route of each line through them."""
    rows, sources = _rows(boxes), [box.sources for box in boxes]
    widths = [_width(box) for box in boxes]
    routes: list[list[int]] = []
    for position, box in enumerate(boxes):
        for source in box.sources:
            route = [source]
            # A line has a point of its own in each row that it crosses, so that it avoids the boxes there.
            for row in range(rows[source] + 1, rows[position]):
                sources.append((route[-1],))
                route.append(len(rows))
                rows.append(row)
                widths.append(0.0)
            routes.append([*route, position])
    members: dict[int, list[int]] = defaultdict(list)
    for position, row in enumerate(rows):
        members[row].append(position)
    totals = {row: sum(widths[each] + GAP for each in listed) for row, listed in members.items()}
    middle = min(max(totals.values()), MAX_CENTERED) / 2
    centers = [(0.0, 0.0)] * len(rows)
    for row in sorted(members):
        # Sorted by the mean of their sources, so that few lines cross.
        placed = sorted(members[row], key=lambda each: _mean([centers[one][0] for one in sources[each]]))
        x = GAP + max(0.0, middle - totals[row] / 2)
        for position in placed:
            centers[position] = (x + widths[position] / 2, (row + 0.5) * ROW_HEIGHT)
            x += widths[position] + GAP
    return centers, routes


def _width(box: Box) -> float:
    return len(_label(box.label)) * CHARACTER_WIDTH + 16


def _mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else 0.0
