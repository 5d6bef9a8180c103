"""Diagrams of nodes, values and function bodies: Mermaid for Markdown, and SVG for HTML.

Source: https://mermaid.js.org/syntax/flowchart.html, "Entity codes to escape characters".
"""

import html
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise, zip_longest
from typing import Literal, NamedTuple

from opshift.model.attributes import read_attribute
from opshift.model.locations import without_secrets
from opshift.model.messages import AttributeProto, FunctionProto, GraphProto, TensorProto
from opshift.registry.models import OperatorVersion

MAX_NODES = 60
"""Maximum number of nodes in the diagram of a function body: larger diagrams are too wide to read."""

MAX_LABEL = 32
MAX_CENTERED = 1000
"""Maximum width in which rows are centered, so that the left side of a wide drawing is not empty."""

CHARACTER_WIDTH, LINE_HEIGHT, PADDING = 7.5, 14, 14
GAP, ROW_GAP = 20, 36

ARROW = (
    '<svg class="definitions" aria-hidden="true"><defs><marker id="arrow" viewBox="0 0 8 8" refX="8" refY="4"'
    ' markerWidth="8" markerHeight="8" orient="auto-start-reverse"><path d="M0 0L8 4L0 8z"/></marker>'
    "</defs></svg>"
)
"""Arrowhead for the drawings of a page; each page contains it once."""

Point = tuple[float, float]

BoxKind = Literal["input", "value", "node", "added", "removed", "changed"]


class Box(NamedTuple):
    """Value or node, and the positions of the boxes that it reads; a line from a later box points upwards."""

    label: str
    sources: tuple[int, ...] = ()
    kind: BoxKind = "input"
    """Kind of box. Inputs are in the first row; other boxes without sources are above their first reader."""
    detail: str = ""
    """Second line of the text."""
    notes: tuple[str, ...] = ()
    """Text at the line from each source; none by default."""

    @property
    def is_node(self) -> bool:
        """Whether the box shows a node."""
        return self.kind not in ("input", "value")

    @property
    def text_lines(self) -> list[str]:
        """Lines of the text; a long label is cut."""
        return [_short_label(self.label), *filter(None, [self.detail])]


class EdgePath(NamedTuple):
    """Line between two boxes; `points` has the indices of its points, from the top row to the bottom row."""

    points: Sequence[int]
    is_upward: bool
    note: str


def mermaid(boxes: Sequence[Box], caption: str = "") -> str:
    """Return a fenced Mermaid flowchart; an empty text without boxes."""
    if not boxes:
        return ""
    lines = ["---", f"title: {caption}", "---"] if caption else []
    lines.append("flowchart TD")
    for position, box in enumerate(boxes):
        text = re.sub(r"[^\w .=]", lambda match: f"#{ord(match[0])};", _short_label(box.label))
        lines.append(f'n{position}["{text}"]' if box.is_node else f'n{position}(["{text}"])')
        lines += [f"n{source} --> n{position}" for source in box.sources]
    return "\n".join(["```mermaid", *lines, "```"])


def svg(boxes: Sequence[Box], caption: str) -> str:
    """Return an SVG drawing for a page with `ARROW`; an empty text without boxes."""
    if not boxes:
        return ""
    caption = html.escape(caption)
    centers, routes = _layout_boxes(boxes)
    halves = [(_box_width(box) / 2, _box_height(box) / 2) for box in boxes]
    # points of lines have no width, and may be farther to the right than all boxes
    halves += [(0.0, max(map(_box_height, boxes)) / 2)] * (len(centers) - len(boxes))
    # Lines are drawn first, so that boxes cover them.
    parts, notes, sentences = [], [], []
    for route, is_upward, note in routes:
        first, last = (route[-1], route[0]) if is_upward else (route[0], route[-1])
        end = "start" if is_upward else "end"
        path = _curve_path([(centers[each], halves[each][1]) for each in route])
        parts.append(f'<path d="{path}" marker-{end}="url(#arrow)"/>')
        names = " to ".join(boxes[each].text_lines[0] for each in (first, last))
        sentences.append(f"{names} ({note})" if note else names)
        if note:
            (x, y), (next_x, next_y) = (centers[each] for each in route[:2])
            middle = f'x="{(x + next_x) / 2:g}" y="{(y + next_y) / 2:g}"'
            notes.append(f'<text class="note" {middle}>{html.escape(note)}</text>')
    for box, (x, y), (half, tall) in zip(boxes, centers, halves, strict=False):
        radius = 3 if box.is_node else PADDING
        place = f'x="{x - half:g}" y="{y - tall:g}" width="{2 * half:g}" height="{2 * tall:g}"'
        top = y - (len(box.text_lines) - 1) * LINE_HEIGHT / 2
        text = "".join(
            f'<text{name} x="{x:g}" y="{top + row * LINE_HEIGHT:g}">{html.escape(line)}</text>'
            for row, (name, line) in enumerate(zip(("", ' class="detail"'), box.text_lines, strict=False))
        )
        parts.append(f'<g class="{box.kind}"><rect {place} rx="{radius}"/>{text}</g>')
    width = max(x + half for (x, _), (half, _) in zip(centers, halves, strict=True)) + GAP
    height = max(y + tall for (_, y), (_, tall) in zip(centers, halves, strict=True)) + GAP
    return (
        f'<figure tabindex="0"><figcaption>{caption}</figcaption>'
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{caption}"'
        f' viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}">'
        f"<desc>{html.escape('; '.join(sentences))}</desc>{''.join((*parts, *notes))}</svg></figure>"
    )


def _short_label(text: str) -> str:
    printable = "".join(each if each.isprintable() else "?" for each in without_secrets(text))
    return printable if len(printable) <= MAX_LABEL else f"{printable[:MAX_LABEL]}..."


def _curve_path(points: Sequence[tuple[Point, float]]) -> str:
    """Return the path of a line that passes vertically between the boxes of each row.

    Args:
        points: the point in each row, and half the height of the box around it.
    """
    path = ""
    for ((x, y), half), ((next_x, next_y), next_half) in pairwise(points):
        start, end = y + half, next_y - next_half
        bend = (end - start) / 2
        path += f"{'L' if path else 'M'}{x:g} {start:g}"
        path += f"C{x:g} {start + bend:g} {next_x:g} {end - bend:g} {next_x:g} {end:g}"
    return path


def _row_of_each(boxes: Sequence[Box]) -> list[int]:
    """Return the row of each box: below all earlier boxes that it reads.

    A box without sources, if it is not an input, is in the row above its first reader.
    """
    rows: list[int] = []
    for box in boxes:
        earlier = (each for each in box.sources if each < len(rows))
        rows.append(max((rows[source] + 1 for source in earlier), default=0))
    readers: dict[int, list[int]] = defaultdict(list)
    for position, box in enumerate(boxes):
        for source in box.sources:
            readers[int(source)].append(position)
    for position in reversed(range(len(boxes))):
        if boxes[position].kind != "input" and not boxes[position].sources and readers[position]:
            rows[position] = min(rows[each] for each in readers[position]) - 1
    return rows


def _layout_boxes(boxes: Sequence[Box]) -> tuple[list[Point], list[EdgePath]]:
    """Return the centers of the boxes and of points in lines, and the route of each line through them."""
    rows, widths, tallest = (
        _row_of_each(boxes),
        [_box_width(box) for box in boxes],
        max(map(_box_height, boxes)),
    )
    above: dict[int, list[int]] = defaultdict(list)
    routes: list[EdgePath] = []
    for position, box in enumerate(boxes):
        for source, note in zip_longest(box.sources, box.notes, fillvalue=""):
            upper, lower = sorted((int(source), position), key=rows.__getitem__)
            route = [upper]
            # A line has a point in each row that it crosses, so that it avoids the boxes of the row.
            for row in range(rows[upper] + 1, rows[lower]):
                route.append(len(rows))
                rows.append(row)
                widths.append(0.0)
            route.append(lower)
            for one, other in pairwise(route):
                above[other].append(one)
            routes.append(EdgePath(route, upper == position, note))
    members: dict[int, list[int]] = defaultdict(list)
    for position, row in enumerate(rows):
        members[row].append(position)
    totals = {row: sum(widths[each] + GAP for each in listed) for row, listed in members.items()}
    middle = min(max(totals.values()), MAX_CENTERED) / 2
    centers = [(0.0, 0.0)] * len(rows)
    for row in sorted(members):
        # Sort boxes by the mean position of their sources, to reduce crossings of lines.
        placed = sorted(members[row], key=lambda each: _mean_of([centers[one][0] for one in above[each]]))
        x = GAP + max(0.0, middle - totals[row] / 2)
        for position in placed:
            centers[position] = (x + widths[position] / 2, GAP + (row + 0.5) * tallest + row * ROW_GAP)
            x += widths[position] + GAP
    return centers, routes


def _box_width(box: Box) -> float:
    return max(map(len, box.text_lines)) * CHARACTER_WIDTH + 16


def _box_height(box: Box) -> float:
    return len(box.text_lines) * LINE_HEIGHT + PADDING


def _mean_of(values: list[float]) -> float:
    return sum(values) / len(values) if values else 0.0


BodyNode = tuple[str, Mapping[str, object], Sequence[str], Sequence[str]]
"""Operator, attributes, inputs and outputs of a node."""


def body_boxes(version: OperatorVersion) -> list[Box]:
    """Return boxes of the inputs, nodes and outputs of `version.body`; empty without a body.

    The list is also empty for a body with more than `MAX_NODES` nodes.
    """
    if version.body is None:
        return []
    nodes = [(each.op_type, each.attributes, each.inputs, each.outputs) for each in version.body.nodes]
    inputs, outputs = ([each.name for each in listed] for listed in (version.inputs, version.outputs))
    return _body_boxes(inputs, nodes, outputs)


def function_boxes(function: FunctionProto) -> list[Box]:
    """Return the boxes of a local function like `body_boxes`, without tensor and graph attributes."""
    nodes = [
        (each.op_type, dict(_attribute_values(each.attribute)), each.input, each.output)
        for each in function.node
    ]
    return _body_boxes(function.input, nodes, function.output)


def _attribute_values(attributes: Iterable[AttributeProto]) -> Iterator[tuple[str, object]]:
    for each in attributes:
        value = f"@{each.ref_attr_name}" if each.ref_attr_name else read_attribute(each)
        if not isinstance(value, TensorProto | GraphProto):
            yield each.name, value.decode() if isinstance(value, bytes) else value


def _body_boxes(inputs: Sequence[str], nodes: Sequence[BodyNode], outputs: Sequence[str]) -> list[Box]:
    if len(nodes) > MAX_NODES:
        return []
    boxes = [Box(each) for each in inputs]
    producers = {each: position for position, each in enumerate(inputs)}
    for op_type, attributes, read, written in nodes:
        values = " ".join(
            f"{name}={list(value) if isinstance(value, tuple) else value}"
            for name, value in attributes.items()
        )
        sources = dict.fromkeys(producers[name] for name in read if name in producers)
        producers.update(dict.fromkeys(written, len(boxes)))
        boxes.append(Box(f"{op_type} {values}".strip(), tuple(sources), "node"))
    produced = [each for each in outputs if each in producers]
    return [*boxes, *(Box(name, (producers[name],), "value") for name in produced)]
