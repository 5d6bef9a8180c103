"""Commands of the page that converts models. Pyodide runs them in a web worker, on files that it mounts.

The commands return the same models and JSON data as the command line, and reports as pages.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import chdir
from dataclasses import asdict, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, TypedDict

from opshift.adapters.core.adapter_table import adapter_table
from opshift.analysis.model_summary import summarize_model
from opshift.analysis.model_text import model_lines, model_of_text
from opshift.analysis.pages.conversion_page import conversion_page
from opshift.analysis.pages.document import Document, code_span
from opshift.analysis.reach import reach as reachable
from opshift.analysis.runs import runs as runtimes_of
from opshift.catalogue.browser import result_pages
from opshift.catalogue.browser.result_pages import Offer, offers, with_controls
from opshift.converter.convert import convert_with, plan_with
from opshift.converter.cost import plan_with_cost
from opshift.converter.options import Options, read_allow
from opshift.converter.refusals import ConversionRefused, Refusal
from opshift.converter.report import Report, conversion_report
from opshift.converter.streaming.external_data import external_files
from opshift.converter.streaming.weights import Weights, open_without_weights, output_pieces
from opshift.model.errors import InvalidModel, OpshiftError, UsageError
from opshift.model.files import read_bytes, serialize_model
from opshift.model.messages import ModelProto
from opshift.model.operator_ids import DEFAULT_DOMAIN, opset_imports
from opshift.model.plain_data import json_values
from opshift.model.tensor_pieces import Piece, total_size, unconverted
from opshift.registry.precompiled import DEFINITIONS
from opshift.registry.registry import default_registry
from opshift.registry.runtimes.files import RUNTIMES, get_runtime, runtime_files
from opshift.stores.source_file import Source, open_source

OWN_SETTINGS: Final = ("nodes", "runtime")
"""Settings of the page that are not options of a conversion."""

ALL_RUNTIMES: Final = "all"
"""Value of the setting `runtime` that selects all releases of all runtimes."""


class Answer(TypedDict, total=False):
    """Result of a command. If `missing` is set, load the archive with this name and repeat the command.

    `pieces` is the converted file: bytes, or (start, end) of a range to copy from the source file.
    """

    possible: bool
    offers: Sequence[Offer]
    html: str
    page: str
    markdown: str
    json: str
    pieces: Sequence[Piece]
    missing: str


def run(command: str, paths: Sequence[str], settings: str) -> Answer:
    """Run a command on mounted files, with settings as a JSON object."""
    given = json.loads(settings)
    if given.get("recognize") and _lacks_patterns():
        return {"missing": "patterns"}
    try:
        return COMMANDS[command](*paths, given)
    except ModuleNotFoundError as error:
        return {"missing": str(error.name).partition(".")[0]}
    except MemoryError:
        return _answer_of_error(
            UsageError("needs more memory than the browser provides", remedy="use the command line")
        )
    except OpshiftError as error:
        return _answer_of_error(error)


def _lacks_patterns() -> bool:
    """Return whether compiled definitions are loaded, but not yet the patterns for `recognize`."""
    from opshift.converter.recognition.load import PATTERNS

    return DEFINITIONS.is_packaged and not PATTERNS.is_packaged


def prepare() -> None:
    """Convert small models, so that a memory snapshot has the modules and definitions for most models."""
    adapter_table()
    with TemporaryDirectory() as folder, chdir(folder):
        for opset, target in (9, 13), (17, 7):
            Path("model.onnx").write_bytes(_bytes_of_text("y = Clip(float[2,N] x)", opset))
            run("convert", ["model.onnx"], json.dumps({"target": [target], "nodes": True}))


def _bytes_of_text(text: str, opset: int) -> bytes:
    return serialize_model(model_of_text(text, opset, default_registry()))


def _answer_of_error(error: OpshiftError) -> Answer:
    return _answer_with_page(result_pages.error_page(error), error.as_dict(), possible=False)


def _answer_with_page(
    document: Document, data: Mapping[str, object], pieces: Sequence[Piece] = (), *, possible: bool = True
) -> Answer:
    return {
        "possible": possible,
        "html": with_controls(document.body()),
        "page": document.html(),
        "markdown": document.markdown,
        "json": json.dumps(json_values(data), indent=2, allow_nan=False) + "\n",
        "pieces": pieces,
    }


def _options_of_settings(settings: Mapping[str, object]) -> Options:
    given = {name: each for name, each in settings.items() if name not in OWN_SETTINGS}
    return Options.of(**given, inplace=True)  # type: ignore[arg-type]


def read(settings: Mapping[str, object]) -> Answer:
    """Convert the text of a model or of nodes to a serialized model."""
    content = _bytes_of_text(str(settings["text"]), int(str(settings["opset"])))
    return _answer_with_page(Document(""), {}, [content])


def convert(path: str, settings: Mapping[str, object]) -> Answer:
    """Convert a model, or explain the refusals; the setting `nodes` adds the result as text."""
    options = _options_of_settings(settings)
    with open_source(path) as file, Weights(file) as weights:
        message = weights.message()
        model = read_bytes(message, file.place)
        located = external_files(message, file.place)
        try:
            result, plan = convert_with(model, options)
        except ConversionRefused:
            report = Report.of(plan_with(model, options))
            return _with_offers(_answer_of_conversion(path, report, located), report, model, settings)
        report = conversion_report(plan, result, options)
        pieces = _pieces_of_result(report, message, model, weights, file)
        report = replace(report, sizes=(file.size, total_size(pieces)))
        return _answer_of_conversion(path, report, located, pieces, _text_of_model(result, settings))


def _pieces_of_result(
    report: Report, message: bytes, model: ModelProto, weights: Weights, file: Source
) -> Sequence[Piece]:
    found = unconverted(output_pieces(report, message, model, weights, file))
    assert found is not None, "the page converts no element types"
    return found


def _text_of_model(model: ModelProto, settings: Mapping[str, object]) -> str:
    """Return the text of a model if the setting `nodes` is true, else an empty text."""
    return "\n".join(model_lines(model)) if settings.get("nodes") else ""


def _answer_of_conversion(
    path: str,
    report: Report,
    located: Mapping[str, int],
    pieces: Sequence[Piece] = (),
    text: str = "",
) -> Answer:
    data = {"input": path, **report.as_dict(), "external_data": tuple(located)}
    page = conversion_page(report, path, result=text)
    if located:
        names = ", ".join(map(code_span, located))
        page = Document(
            f"{page.markdown}\nThe model has weights in separate files: save it next to {names}.\n"
        )
    return _answer_with_page(page, data, pieces, possible=not report.refusals)


def plan(path: str, settings: Mapping[str, object]) -> Answer:
    """List the changes that a conversion would make, and their cost."""
    with open_source(path) as file, Weights(file) as weights:
        model = read_bytes(weights.message(), file.place)
        report = plan_with_cost(model, _options_of_settings(settings), file.size)
        return _with_offers(_answer_of_conversion(path, report, {}), report, model, settings)


def _with_offers(answer: Answer, report: Report, model: ModelProto, settings: Mapping[str, object]) -> Answer:
    """Return the answer; if the conversion was refused, add other conversions that may succeed."""

    def refused_at(opset: int) -> Sequence[Refusal]:
        return plan_with(model, _options_of_settings({**settings, "target": [str(opset)]})).refusals

    if report.refusals:
        source = opset_imports(model.opset_import, model.ir_version).get(DEFAULT_DOMAIN, 0)
        allowed = read_allow(settings.get("allow", ()))  # type: ignore[arg-type]
        answer["offers"] = list(offers(report.refusals, source, allowed, refused_at))
    return answer


def inspect(path: str, _: Mapping[str, object]) -> Answer:
    """Summarize a model."""
    with open_source(path) as file, Weights(file) as weights:
        summary = summarize_model(read_bytes(weights.message(), file.place), default_registry())
        data = {"input": path, "size": file.size, **asdict(summary)}
        return _answer_with_page(result_pages.summary_page(path, file.size, summary), data)


def reach(path: str, settings: Mapping[str, object]) -> Answer:
    """List the opsets that a model can be converted to."""
    allow, shapes = settings.get("allow", ()), settings.get("shapes", ())
    with open_without_weights(path) as model:
        found = reachable(model, allow=allow, shapes=shapes)  # type: ignore[arg-type]
    return _answer_with_page(result_pages.reach_page(path, found), {"input": path, **found.as_dict()})


def check(path: str, _: Mapping[str, object]) -> Answer:
    """List the rules that a model breaks."""
    from opshift.checker.check import check as findings_of

    try:
        with open_without_weights(path) as model:
            findings = findings_of(model)
    except InvalidModel:  # `check` reports an unreadable file as a finding
        findings = findings_of(path)
    data = {"input": path, "findings": [each.as_dict() for each in findings]}
    return _answer_with_page(result_pages.findings_page(path, findings), data)


def runs(path: str, settings: Mapping[str, object]) -> Answer:
    """List whether runtimes run a model, and why not; by default, the newest release of each runtime."""
    if not RUNTIMES.exists():
        return {"missing": "runtimes"}
    newest = {name.rpartition("-")[0]: name for name in runtime_files()}  # the newest release is the last one
    chosen = settings.get("runtime") or [*newest.values()]
    with open_without_weights(path) as model:  # a path would require the files of weights, too
        found = runtimes_of(model, None if chosen == ALL_RUNTIMES else chosen)  # type: ignore[arg-type]
    return _answer_with_page(result_pages.runs_page(path, found), {"input": path, **found.to_dict()})


def fit(path: str, settings: Mapping[str, object]) -> Answer:
    """Convert a model so that a runtime implements all of its nodes."""
    from opshift.analysis.fit.fit import fit_message, fit_options
    from opshift.analysis.fit.result import DoesNotFit

    if not RUNTIMES.exists():
        return {"missing": "runtimes"}
    runtime = get_runtime(str(settings["runtime"]))
    allow = read_allow(settings.get("allow", ()))  # type: ignore[arg-type]
    recognize, shapes = bool(settings.get("recognize")), settings.get("shapes", ())
    options = fit_options(default_registry(), allow, recognize, shapes)  # type: ignore[arg-type]
    with open_source(path) as file, Weights(file) as weights:
        message = weights.message()
        model = read_bytes(message, file.place)
        imports = opset_imports(model.opset_import, model.ir_version)
        try:
            result, report = fit_message(model, runtime, options)
        except DoesNotFit as error:
            return _answer_with_page(
                result_pages.does_not_fit_page(path, error), error.as_dict(), possible=False
            )
        model.CopyFrom(result)
        pieces = _pieces_of_result(report.conversions[-1], message, model, weights, file)
        page = result_pages.fit_page(path, report, imports, _text_of_model(result, settings))
        return _answer_with_page(page, {"input": path, **report.as_dict()}, pieces)


def compare(old: str, new: str, _: Mapping[str, object]) -> Answer:
    """List what changed between two versions of a model."""
    from opshift.analysis.comparison.compare import compare as compare_models

    result = compare_models(old, new)
    data = {"old": old, "new": new, **result.as_dict()}
    return _answer_with_page(result_pages.comparison_page(f"{old} -> {new}", result), data)


def diff(old: str, new: str, _: Mapping[str, object]) -> Answer:
    """List the differences between two models, with drawings of both graphs."""
    from opshift.analysis.model_diff.diff import diff_model
    from opshift.analysis.pages.diff_page import diff_page

    found = diff_model(old, new)
    return _answer_with_page(diff_page(found, f"{old} -> {new}"), {"old": old, "new": new, **found.as_dict()})


COMMANDS: Final[Mapping[str, Callable[..., Answer]]] = {
    each.__name__: each for each in (read, convert, plan, inspect, reach, check, runs, fit, compare, diff)
}
