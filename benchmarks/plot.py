"""Plot of a run: one color for each tool, one line style for each conversion."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import EngFormatter

from jobs import OURS, THEIRS
from tables import BarChart, Curve, seconds

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLORS = {OURS: "#2f81f7", THEIRS: "#e8710a"}
OTHER = "#8c959f"
STYLES = ("-", "--", ":")
INK = {"light": "#1f2328", "dark": "#e6edf3"}
"""Theme of a page to the color of text and axes; the background is transparent."""
INKED = ("text.color", "axes.edgecolor", "axes.labelcolor", "axes.titlecolor", "xtick.color", "ytick.color")
SETTINGS = {
    "axes.axisbelow": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "font.size": 12,
    "svg.hashsalt": "opshift",  # equal figures produce equal files
}


def write_plots(plotted: Sequence[Curve | BarChart], folder: Path) -> None:
    """Write an SVG file for pages with a light background, and one for those with a dark background."""
    for theme, ink in INK.items():
        with mpl.rc_context(SETTINGS | dict.fromkeys(INKED, ink)):
            path = folder / f"results-{theme}.svg"
            _figure(plotted).savefig(path, transparent=True, metadata={"Date": None})


def _figure(plotted: Sequence[Curve | BarChart]) -> Figure:
    panels = list(dict.fromkeys(each.panel for each in plotted))
    figure = Figure(figsize=(3.6 * len(panels), 3.8), layout="constrained")
    for axes, panel in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
        axes.set_title(panel)
        shown = [each for each in plotted if each.panel == panel]
        curves = [each for each in shown if isinstance(each, Curve)]
        if curves:
            _plot_curves(axes, curves)
        for chart in shown:
            if isinstance(chart, BarChart):
                _plot_bars(axes, chart)
    handles = [Line2D([], [], color=color, linewidth=6, label=tool) for tool, color in COLORS.items()]
    figure.legend(handles=handles, loc="outside upper center", ncols=len(handles), frameon=False)
    return figure


def _plot_curves(axes: Axes, curves: Sequence[Curve]) -> None:
    conversions = [each for each in dict.fromkeys(each.conversion for each in curves) if each]
    styles = dict(zip(conversions, STYLES, strict=False))
    for curve in curves:
        style = styles.get(curve.conversion, "none")
        color = COLORS[curve.tool]
        axes.loglog(curve.x, curve.seconds, color=color, linestyle=style, marker="o", markersize=4)
    axes.grid(alpha=0.25)
    axes.set(xlabel=curves[0].x_label, ylabel="CPU time")
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    axes.yaxis.set_major_formatter(EngFormatter(unit="s"))
    if styles:
        handles = [Line2D([], [], color=OTHER, linestyle=styles[each], label=each) for each in styles]
        axes.legend(handles=handles, frameon=False, fontsize=10)


def _plot_bars(axes: Axes, chart: BarChart) -> None:
    tools = list(chart.seconds)
    bars = axes.barh(tools, list(chart.seconds.values()), color=[COLORS.get(each, OTHER) for each in tools])
    axes.bar_label(bars, list(map(seconds, chart.seconds.values())), padding=4)
    axes.invert_yaxis()
    axes.margins(x=0.35)
    axes.grid(axis="x", alpha=0.25)
    axes.set(xlabel="elapsed seconds")
