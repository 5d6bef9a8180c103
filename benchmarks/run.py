"""Benchmark suite: opshift compared with ONNX's converter, `cp`, and plain parsing and serializing."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markdown import Markdown

import blocks
import distinct
import extra_memory
import files
import growth
import in_memory
import inference_time
import lookups
import questions
import real
import tiny
import weights_in_memory
from machine import facts
from measuring import HERE
from settings import Settings
from tables import BarChart, Curve, Findings, Table


class Section(StrEnum):
    """Sections of the suite that can be measured separately."""

    BLOCKS = "blocks"
    REAL = "real"
    INFERENCE = "inference"
    MEMORY = "in-memory"
    DISTINCT = "distinct"
    EXTRA = "extra-memory"
    GROWTH = "growth"
    WEIGHTS = "weights"
    FILES = "files"
    TINY = "tiny"
    LOOKUPS = "lookups"
    QUESTIONS = "questions"


MEASURES: dict[Section, Callable[[Settings], Findings]] = {
    Section.BLOCKS: blocks.measure,  # small models first: large ones fragment the heap
    Section.REAL: real.measure,
    Section.INFERENCE: inference_time.measure,
    Section.MEMORY: in_memory.measure,
    Section.DISTINCT: distinct.measure,
    Section.EXTRA: extra_memory.measure,
    Section.GROWTH: growth.measure,
    Section.WEIGHTS: weights_in_memory.measure,
    Section.FILES: files.measure,
    Section.TINY: tiny.measure,
    Section.LOOKUPS: lookups.measure,
    Section.QUESTIONS: questions.measure,
}
RESULTS = HERE / "RESULTS.md"
INTRODUCTION = """\
# Benchmarks

Written by `python benchmarks/run.py`. Times are medians of runs taken in turn; memory is measured in separate
processes. A figure in bold is followed by its limit.
"""
IMAGE = """\
<picture>
<source media="(prefers-color-scheme: dark)" srcset="results-dark.svg">
<img alt="CPU time of opshift and of ONNX's converter" src="results-light.svg">
</picture>"""


def main(
    only: Annotated[list[Section] | None, typer.Option(help="Measure this section; may be repeated.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Measure less, in one or two minutes.")] = False,
    folder: Annotated[Path | None, typer.Option(help="Folder for temporary files of up to 8 GiB.")] = None,
) -> None:
    """Measure and print tables; a full run writes RESULTS.md and the plots next to this file."""
    is_full = not only and not quick
    if is_full:
        import plot  # noqa: F401  # a missing matplotlib is an error before the measurements, not after
    console = Console()
    machine = facts()  # before the measurements, which raise the load
    tables: list[Table] = []
    plotted: list[Curve | BarChart] = []
    with tempfile.TemporaryDirectory(dir=folder) as temporary:
        for section in only or Section:
            found = MEASURES[section](Settings(Path(temporary), quick))
            tables += found.tables
            plotted += found.plotted
            console.print(Markdown("\n\n".join(map(str, found.tables))))
    if is_full:
        _write(machine, tables, plotted)


def _write(machine: str, tables: list[Table], plotted: list[Curve | BarChart]) -> None:
    from plot import write_plots

    bars = [bar for table in tables for bar in table.bars()]
    count = f"{sum(bar.is_met for bar in bars)} of {len(bars)} limits are met."
    RESULTS.write_text("\n\n".join([f"{INTRODUCTION}\n{machine}", count, IMAGE, *map(str, tables)]) + "\n")
    write_plots(plotted, HERE)


if __name__ == "__main__":
    typer.run(main)
