"""Proposals with a shape rule."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from support.proposals import operator_fields
from support.workbench import (
    FLOAT,
    PRIMITIVE,
    Workbench,
    reference_text,
    texts,
)

from opshift.proposals.check import check_proposal, status_of
from opshift.proposals.evidence.run import load_module
from opshift.registry.shapes.all_rules import SHAPE_RULES
from opshift.registry.shapes.rule_table import temporary_rules

SHAPES = '''"""Shape rule of Rows."""

from opshift.shapes import ShapeContext, Shapes, rule


@rule("acme_rows")
def rows(node: ShapeContext) -> Shapes:
    """Keep the first dimension."""
    shape = node.shape(0)
    return [None if shape is None else shape[:1]]
'''
ROWS = """\
examples:
- {name: main, inputs: [{values: [[-3.5, 0.5], [1, 2]]}]}
- {name: empty, inputs: [{values: [], shape: [0, 3]}]}
- {name: not finite, inputs: [{values: [[nan, inf, -inf]]}]}
"""


def _start_rows(
    bench: Workbench, domain: str, shapes: str = SHAPES
) -> tuple[Path, dict[str, Any], dict[str, str]]:
    definition = {"shape": "acme_rows", **FLOAT, "descriptions": texts()}
    files = {"reference.py": reference_text("X.sum(axis=1)"), "examples.yaml": ROWS, "shapes.py": shapes}
    return bench.start("new-operator", "Rows", domain), definition, files


def _start_update(bench: Workbench) -> tuple[Path, dict[str, Any]]:
    """Accept Rows, and start an update of it with another element type."""
    path, definition, files = _start_rows(bench, "com.acme")
    bench.fill(path, definition, files, primitive_reason=PRIMITIVE)
    wider = {
        "type_constraints": {"T": ["tensor(float)", "tensor(double)"]},
        "step": {"change": "double, too."},
    }
    return bench.start("update", "Rows", "com.acme"), wider


def test_proposal_brings_shape_rule(bench: Workbench) -> None:
    path, definition, files = _start_rows(bench, "com.acme")
    accepted = bench.fill(path, definition, files, primitive_reason=PRIMITIVE)
    assert accepted.shape == "acme_rows"
    assert "acme_rows" not in SHAPE_RULES
    assert (bench.tree / "adapters" / "com_acme_rows_1_shapes.py").read_text() == SHAPES
    with temporary_rules():
        load_module(bench.tree / "adapters" / "com_acme_rows_1_shapes.py")
        assert "acme_rows" in SHAPE_RULES


def test_update_uses_shape_rule_of_the_tree(bench: Workbench) -> None:
    update, wider = _start_update(bench)
    accepted = bench.fill(update, wider, {"examples.yaml": ROWS})
    assert (accepted.since_version, accepted.shape) == (2, "acme_rows")
    assert "acme_rows" not in SHAPE_RULES
    assert not list((bench.tree / "adapters").glob("com_acme_rows_2_shapes.py"))


def test_update_may_replace_its_own_shape_rule(bench: Workbench) -> None:
    update, wider = _start_update(bench)
    with pytest.raises(AssertionError, match="the rule infers"):
        bench.fill(
            update, wider, {"examples.yaml": ROWS, "shapes.py": SHAPES.replace("shape[:1]]", "shape]")}
        )


def test_status_runs_no_shape_rule(bench: Workbench) -> None:
    path, definition, files = _start_rows(bench, "ai.onnx", "raise SystemExit\n" + SHAPES)
    operator_fields(shape=definition["shape"])(path)
    (path / "shapes.py").write_text(files["shapes.py"])
    assert "operator.shape" not in {each.rule for each in status_of(path, bench.registry).open}


@pytest.mark.parametrize(
    ("shapes", "rule", "text"),
    [
        pytest.param(SHAPES.replace("import", "imports"), "shape.format", "SyntaxError", id="invalid Python"),
        pytest.param(
            SHAPES.replace("acme_rows", "same_as_first"),
            "shape.format",
            "'same_as_first' is defined by",
            id="name",
        ),
        pytest.param(SHAPES.replace("shape[:1]]", "shape[9]]"), "shape.agrees", "IndexError", id="exception"),
        pytest.param(
            SHAPES.replace("shape[:1]]", "shape]"), "shape.agrees", "the rule infers (2, 2)", id="shape"
        ),
    ],
)
def test_reports_wrong_shape_rule(bench: Workbench, shapes: str, rule: str, text: str) -> None:
    path, definition, files = _start_rows(bench, "com.acme", shapes)
    with pytest.raises(AssertionError, match=rf"error {rule}: .*{re.escape(text)}"):
        bench.fill(path, definition, files, primitive_reason=PRIMITIVE)


def test_name_resembles_no_other_rule(bench: Workbench) -> None:
    """Commands that do not run the file would take the name for a misspelt one."""
    path, _, files = _start_rows(bench, "com.acme", SHAPES.replace("acme_rows", "same_as_firsts"))
    operator_fields(shape="same_as_firsts")(path)
    (path / "shapes.py").write_text(files["shapes.py"])
    found = {each.rule: each.reason for each in check_proposal(path, bench.registry).findings}
    assert found["operator.shape"].endswith("resembles that of 'same_as_first'")


UP, DOWN = "def up(node: Node, out: Rewriter) -> None:", "def down(node: Node, out: Rewriter) -> None:"
