"""Plot of the curves of a run, with one panel for each comparison."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure

from tables import Curve


def draw(curves: Sequence[Curve], path: Path) -> None:
    """Write the curves to an SVG file, with logarithmic axes."""
    panels = list(dict.fromkeys(curve.panel for curve in curves))
    figure = Figure(figsize=(6 * len(panels), 5), layout="constrained")
    for axes, panel in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
        shown = [curve for curve in curves if curve.panel == panel]
        for curve in shown:
            axes.loglog(curve.x, curve.y, marker="o", label=curve.label)
        axes.set(title=panel, xlabel=shown[0].x_label, ylabel=shown[0].y_label)
        axes.grid(visible=True, alpha=0.3)
        axes.legend()
    figure.savefig(path)
