"""`opshift runs`: show which runtimes run a model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from opshift.cli import completion, options
from opshift.cli.commands import AfterImports
from opshift.cli.errors import EXIT_FINDINGS, add_file_to_errors
from opshift.cli.findings.finding import MISSING_KERNEL, FileFinding, Severity
from opshift.cli.gate.inspect_models import inspect_models
from opshift.cli.gate.several import GateOptions
from opshift.cli.options import expand_records, registry_with
from opshift.cli.output import print_result
from opshift.cli.page import Column, Page
from opshift.cli.paths import STDIN, model_input
from opshift.converter.streaming.external_data import open_with_data_files
from opshift.model.message_text import count_text
from opshift.model.operator_ids import DEFAULT_DOMAIN, short_label
from opshift.registry.runtimes.files import YAML_SUFFIX, get_runtime, runtime_files
from opshift.runtimes.check_support import UnsupportedGroup
from opshift.runtimes.target_runtimes import missing_label
from opshift.runtimes.verdicts import (
    AFTER_CONVERSION,
    DOES_NOT_RUN,
    MAY_RUN,
    RUNS,
    VERDICTS,
)

if TYPE_CHECKING:
    from opshift.analysis.runs import ConversionAttempt, Runs, RuntimeResult
    from opshift.registry.runtimes.runtime import Runtime


EVIDENCE = {"kernel_registry": "package", "documentation": "documents", "measurement": "measured"}
"""Texts for the kinds of evidence about a runtime; `package`: the kernels that its package registers."""

MAX_CAUSES = 2
"""Maximum number of missing operators in a row of the table."""

MAX_PLACES = 3
"""Maximum number of printed nodes per cause; `--explain` and JSON list all."""

RuntimeOption = Annotated[
    list[str] | None,
    typer.Option(
        "--runtime",
        "-r",
        metavar="RUNTIME",
        autocompletion=completion.complete_runtime,
        help="A name such as onnxruntime-1.31, or a YAML file that describes a runtime. Prints details, "
        "and exits with 1 if one of them does not run the model, or runs it only after a conversion. By "
        "default, all runtimes are listed. May be repeated.",
    ),
]


@expand_records
def runs(
    sources: options.InputsArgument = None,
    runtime: RuntimeOption = None,
    explain: Annotated[bool, typer.Option("--explain", help="Print details for all runtimes.")] = False,
    *,
    gate: GateOptions,
    context: typer.Context,
) -> None:
    """Show which runtimes run a model.

    For each runtime: whether it implements all nodes of the model; otherwise the nearest opset to convert to,
    or the nodes that prevent it. `opshift runtimes` lists the runtimes.
    """
    registry_with(gate.folders)  # report invalid definitions before any model is read
    named = tuple(_one_name_each(runtime or ()))
    for each in () if named else runtime_files():
        get_runtime(each)
    if isinstance(context.obj, AfterImports):  # collections then skip the records of the runtimes
        context.obj.run()
    described = [Path(each) for each in named if each.endswith(YAML_SUFFIX)]
    inspect = partial(runs_of_file, runtimes=named, explain=explain, folders=gate.folders)
    # The digest of the ledger includes these files, because they affect the results.
    gate = gate._replace(folders=[*(gate.folders or ()), *described])
    found = inspect_models(sources or [], gate, inspect, VERDICTS, "Reading {}")
    if found is not None:
        print_result(gate.form, found.as_dict(), found.write)
        if named and not found.answers:
            raise typer.Exit(EXIT_FINDINGS)


def _one_name_each(names: Sequence[str]) -> Iterator[str]:
    """Yield the first name of each runtime: `onnxruntime-1.31` and `onnxruntime-1.31.1` may be the same."""
    found: list[Runtime] = []
    for name in names:
        runtime = get_runtime(name)
        if runtime not in found:
            found.append(runtime)
            yield name


class RunsOfModel(NamedTuple):
    """Results of all requested runtimes for one model."""

    source: str
    answers: Runs
    named: tuple[str, ...]
    """Runtimes named with `--runtime`: the command fails if one of them does not run the model."""
    explain: bool

    @property
    def is_named(self) -> bool:
        """Whether runtimes were named with `--runtime`."""
        return bool(self.named)

    @property
    def result(self) -> str:
        """The least favourable verdict on a runtime, such as `does not run`."""
        return max((each.verdict for each in self.answers.results), key=VERDICTS.index)

    def findings(self) -> Iterator[FileFinding]:
        """Yield a finding for each reason why a runtime does not run the unchanged model."""
        level: Severity = "error" if self.is_named else "note"
        for result, command in zip(self.answers.results, self._remedies(), strict=True):
            for each in result.support.missing:
                remedy = command or each.remedy
                yield FileFinding(MISSING_KERNEL, level, each.reason, self.source, each.places[0], remedy)

    def cells(self) -> dict[str, object]:
        """Return the numbers of runtimes with each verdict."""
        verdicts = [each.verdict for each in self.answers.results]
        return {each: verdicts.count(each) for each in VERDICTS}

    def as_dict(self) -> dict[str, object]:
        """Return plain data for JSON."""
        return {"input": self.source, **self.answers.to_dict()}

    def write(self, page: Page) -> None:
        """Print a row for each runtime or group of releases with equal results; on request, print details."""
        page.line(self.source, style="bold")
        page.facts({**self.answers.opsets, "IR version": self.answers.ir_version})
        page.blank()
        page.table((Column("runtime", "cyan"), "runs", "notes", "source"), _table_rows(self.answers.results))
        if self.explain or self.is_named:
            for each, remedy in zip(self.answers.results, self._remedies(), strict=True):
                self._write_details(page, each, remedy)

    def _remedies(self) -> Iterator[str]:
        """Yield the command for each result that makes the runtime run the model, or an empty text."""
        names = self.named or tuple(each.runtime for each in self.answers.results)
        for name, each in zip(names, self.answers.results, strict=True):
            # the path of a YAML file identifies its runtime, not the name in the file
            yield _command_for(self.source, each, name if name.endswith(YAML_SUFFIX) else each.runtime)

    def _write_details(self, page: Page, result: RuntimeResult, remedy: str) -> None:
        """Print the nodes that a runtime does not run, before and after a conversion, advice, and notes."""
        page.heading(f"{result.runtime}: {result.verdict}")
        most = None if self.explain else MAX_PLACES
        conversion = result.conversion
        for each in result.support.missing:
            if not each.operator or not conversion or conversion.succeeds:
                _write_missing(page, each, most)
        if conversion and not conversion.succeeds:
            page.prose(f"After a conversion to {_versions_text(conversion)}:")
            for cause in conversion.refusals:
                page.prose(f"refused: {cause}", style="red")
            for each in conversion.support.missing if conversion.support else ():
                _write_missing(page, each, most)
        if remedy:
            page.prose(f"help: {remedy}")
        support = conversion.support if conversion and conversion.support else result.support
        for note in support.warnings:
            page.prose(f"wrong results: {note}")
        for note in support.uncertain:
            page.prose(f"uncertain: {note}")
        if support.fallback:
            page.prose(f"run by the fallback runtime: {', '.join(map(short_label, support.fallback))}")


def _result_text(result: RuntimeResult) -> str:
    """Return the cell of the column `runs`: `yes`, `maybe`, `no`, or the opset, as in `at opset 17`."""
    if result.verdict == AFTER_CONVERSION and result.conversion:
        support = result.conversion.support
        is_uncertain = support is not None and support.uncertain
        return f"{'maybe ' if is_uncertain else ''}at {_versions_text(result.conversion)}"
    return {RUNS: "yes", MAY_RUN: "maybe"}.get(result.verdict, "no")


def _versions_text(conversion: ConversionAttempt) -> str:
    """Return the versions to convert to, such as `opset 17, ai.onnx.ml=3` or `IR version 8`."""
    targets = ", ".join(_target_arguments(conversion))
    return f"opset {targets}" if targets else f"IR version {conversion.ir_version}"


def _table_rows(results: Iterable[RuntimeResult]) -> Iterator[tuple[str, ...]]:
    """Yield a row for each group of consecutive releases of a runtime with equal cells."""
    from opshift.analysis.runs import group_releases

    for name, cells in group_releases(results, _table_cells):
        yield name, *cells


def _table_cells(result: RuntimeResult) -> tuple[str, ...]:
    return _result_text(result), _notes_text(result), EVIDENCE.get(result.evidence, result.evidence)


def _notes_text(result: RuntimeResult) -> str:
    conversion = result.conversion
    support = conversion.support if conversion and conversion.support else result.support
    if result.verdict != DOES_NOT_RUN:
        notes = [count_text(conversion.added_nodes, "more node")] if conversion else []
        for name, listed in (("wrong", support.warnings), ("uncertain", support.uncertain)):
            notes += [f"{len(listed)} {name}"] if listed else []
        return ", ".join(notes)
    if conversion and conversion.refusals:
        return conversion.refusals[0]
    labels = dict.fromkeys(missing_label(each) for each in support.missing)
    shown = [*labels][:MAX_CAUSES]
    shown += [f"{len(labels) - MAX_CAUSES} more"] if len(labels) > MAX_CAUSES else []
    return f"missing {', '.join(shown)}"


def _command_for(source: str, result: RuntimeResult, runtime: str) -> str:
    """Return the command that makes a model run on `runtime`; empty if it runs, or if no command helps."""
    source = "-" if source == STDIN else quote(source)
    conversion = result.conversion
    if conversion is not None and conversion.succeeds:
        targets = "".join(f" -t {each}" for each in _target_arguments(conversion))
        ir_version = f" --ir-version {conversion.ir_version}" if conversion.ir_version else ""
        return f"opshift convert {source} OUT{targets}{ir_version}"
    missing = result.support.missing
    is_promising = bool(missing) and all(each.is_convertible for each in missing)
    return f"try opshift fit {source} OUT --runtime {quote(runtime)}" if is_promising else ""


def _target_arguments(conversion: ConversionAttempt) -> list[str]:
    opsets = conversion.opsets.items()
    return [str(opset) if domain == DEFAULT_DOMAIN else f"{domain}={opset}" for domain, opset in opsets]


def _write_missing(page: Page, missing: UnsupportedGroup, most: int | None) -> None:
    page.prose(missing.reason, style="red")
    if missing.remedy:
        page.prose(f"help: {missing.remedy}", indent=2)
    for place in missing.places[:most] if missing.operator else ():
        page.line(f"  {place}")
    if most is not None and len(missing.places) > most:
        page.line(f"  and {count_text(len(missing.places) - most, 'more node')}")


def runs_of_file(
    source: str, *, runtimes: tuple[str, ...], explain: bool, folders: list[Path] | None
) -> RunsOfModel:
    """Return which runtimes run the model in a file."""
    from opshift.analysis.runs import runs as runs_on

    with add_file_to_errors(source), open_with_data_files(model_input(source)) as model:
        answers = runs_on(model, runtimes or None, registry=registry_with(folders))
    return RunsOfModel(source, answers, runtimes, explain)
