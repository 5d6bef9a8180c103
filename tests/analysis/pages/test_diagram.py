"""Layout of diagrams, and texts in them."""

from __future__ import annotations

import re
from itertools import combinations
from xml.etree import ElementTree

import pytest

from opshift.analysis.pages.diagram import Box, body_boxes, mermaid, svg
from opshift.registry.models import OperatorVersion
from opshift.registry.registry import default_registry

BOXES = [
    Box("input with a long name"),
    Box("X"),
    Box("constant", kind="value"),
    Box("Add", (0, 1), "node"),
    Box("Mul", (2, 3), "added"),
    Box("Sub", (1, 3), "removed"),
    Box("Y", (4, 5), "value"),
]

FUNCTIONS = [each for each in default_registry().get_all_schemas_with_history() if each.body]

HOSTILE = '"]; click n0 "javascript:alert(1)" </text><script>\x1b'


def _rectangles(drawing: str) -> list[list[float]]:
    boxes = [each for each in ElementTree.fromstring(drawing).iter() if each.tag.endswith("}rect")]
    return [[float(each.attrib[name]) for name in ("x", "y", "width", "height")] for each in boxes]


def test_boxes_of_drawing_do_not_overlap() -> None:
    drawing = svg(BOXES, "Example")
    size = [float(each) for each in re.findall(r'viewBox="0 0 (\S+) (\S+)"', drawing)[0]]
    boxes = _rectangles(drawing)
    assert len(boxes) == len(BOXES)
    for (x, y, width, height), (other_x, other_y, other_width, _) in combinations(boxes, 2):
        assert y != other_y or x + width < other_x or other_x + other_width < x
        assert 0 <= x < x + width <= size[0]
        assert 0 <= y < y + height <= size[1]


def test_constant_is_above_its_reader_and_input_in_first_row() -> None:
    rows = [y for _, y, _, _ in _rectangles(svg(BOXES, "Example"))]
    assert rows[0] == rows[1] < rows[2] == rows[3] < rows[4]


def test_drawing_has_class_of_each_kind() -> None:
    assert re.findall('class="([a-z]*)"', svg(BOXES, "Example")) == [each.kind for each in BOXES]


def test_line_from_later_box_leads_upwards() -> None:
    drawing = svg([Box("a", (1,)), Box("b", (0,), "node", notes=("again",))], "Loop")
    up, down = re.findall(r'<path d="M\S+ (\S+?)C.*?" marker-(\w+)', drawing)
    assert (up[0], up[1], down[1]) == (down[0], "start", "end")
    assert "<desc>b to a; a to b (again)</desc>" in drawing


def test_detail_is_second_line_within_its_box() -> None:
    drawing = svg([Box("name", kind="node", detail="a longer second line")], "Example")
    [(x, y, width, height)] = _rectangles(drawing)
    places = re.findall(r'<text[^>]* x="(\S+)" y="(\S+)">(.*?)</text>', drawing)
    assert [text for _, _, text in places] == ["name", "a longer second line"]
    assert y < float(places[0][1]) < float(places[1][1]) < y + height
    assert x < float(places[1][0]) - 20 * 3.6 < float(places[1][0]) + 20 * 3.6 < x + width


def test_labels_have_no_effect() -> None:
    boxes = [Box(HOSTILE), Box(HOSTILE, (0,), "node")]
    assert "<script" not in svg(boxes, "Example")
    assert "<script" not in svg(boxes, HOSTILE)
    ElementTree.fromstring(svg(boxes, "Example"))
    lines = mermaid(boxes).split("\n")
    assert all(re.fullmatch(r'[\w .=#;\[\]()">-]*|```(mermaid)?', line) for line in lines)
    assert mermaid(boxes).count('"') % 2 == 0


def test_no_boxes_are_no_diagram() -> None:
    assert (svg([], "Example"), mermaid([], "Example")) == ("", "")


@pytest.mark.parametrize("version", FUNCTIONS, ids=lambda each: str(each.id))
def test_drawings_contain_all_boxes_and_lines(version: OperatorVersion) -> None:
    drawing = svg(body_boxes(version), "Function body")
    width, height = (float(each) for each in re.findall(r'viewBox="0 0 (\S+) (\S+)"', drawing)[0])
    paths = " ".join(re.findall(r' d="(.*?)"', drawing))
    numbers = [float(each) for each in re.findall(r"-?[\d.]+", paths)]
    assert max(numbers[::2]) < width
    assert max(numbers[1::2]) < height
    assert min(numbers) >= 0
