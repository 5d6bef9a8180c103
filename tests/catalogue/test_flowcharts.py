"""Flowcharts of the documentation as boxes."""

import pytest

from opshift.analysis.pages.diagram import Box
from opshift.catalogue.documents import read_flowchart


def test_reads_nodes_and_lines() -> None:
    chart = """
    flowchart TD
        a["first<br>detail"] -->|yes| b{"second?"}
        b --> a
        c
        c --> b
    """
    assert read_flowchart(chart) == [
        Box("first", (1,), "node", "detail", ("",)),
        Box("second?", (0, 2), "node", notes=("yes", "")),
        Box("c", kind="node"),
    ]


@pytest.mark.parametrize(
    "chart", ["flowchart LR\na --> b", "flowchart TD\na -.-> b", "flowchart TD\nsubgraph x y"]
)
def test_other_statements_are_errors(chart: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        read_flowchart(chart)
