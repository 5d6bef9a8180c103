"""Options and arguments that several commands share, one by one or as the fields of a NamedTuple."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, get_type_hints

import typer

from opshift.batch.settings import Settings, nonempty_arguments
from opshift.checker.findings import Level
from opshift.cli import completion
from opshift.model.errors import UsageError
from opshift.model.locations import is_url

if TYPE_CHECKING:
    from opshift.registry.registry import Registry


TARGET, SHAPES, OUTPUT, EXACTNESS = "Target", "Shapes", "Output", "Exactness"
VERIFICATION, DEFINITIONS = "Verification", "Private domains"
"""Titles of sections of options in the help."""


class Format(StrEnum):
    """Output format of a command.

    `sarif` is SARIF 2.1.0, `github` the annotations of GitHub Actions, and `gitlab` a Code Quality report.
    """

    TEXT = "text"
    JSON = "json"
    SARIF = "sarif"
    GITHUB = "github"
    GITLAB = "gitlab"


PLAIN_FORMATS = (Format.TEXT, Format.JSON)
"""Formats of commands whose results are not findings."""


def _plain_format(text: str) -> Format:
    if text not in PLAIN_FORMATS:
        raise typer.BadParameter(f"{text!r} is not one of {', '.join(map(repr, map(str, PLAIN_FORMATS)))}.")
    return Format(text)


def location(text: str) -> str:
    """Return a path or URL; raise BadParameter for an empty one, which `Path` reads as the current folder."""
    if not text:
        raise typer.BadParameter("the path is empty.")
    return text


def _adapters_path(text: str) -> Path:
    return Path(location(text))


def run_adapters(paths: Iterable[Path]) -> None:
    """Run Python files with adapters; for a folder, run all Python files in it."""
    from opshift.adapters.core.adapter_table import load_adapters

    for path in paths:
        load_adapters(path)


def _run_adapters_option(context: typer.Context, paths: list[Path] | None) -> list[Path] | None:
    """Run adapter files unless the shell only completes a command line; return `paths` unchanged."""
    if paths and not context.resilient_parsing:
        run_adapters(paths)
    return paths


FormatOption = Annotated[
    Format,
    typer.Option(
        "--format",
        metavar="|".join(PLAIN_FORMATS),
        parser=_plain_format,
        autocompletion=lambda: list(map(str, PLAIN_FORMATS)),
        help="Text, or one JSON document on stdout, including errors.",
    ),
]

FindingsFormatOption = Annotated[
    Format,
    typer.Option(
        "--format",
        help="Text; JSON on stdout, including errors (for several models, one line each); or findings as "
        "SARIF 2.1.0, as annotations of GitHub Actions, or as a Code Quality report of GitLab.",
    ),
]


NOT_LOCAL = "it is a URL: give the path of a local file or folder"
"""Reason for refusing a URL as the value of an option that names a file or folder to write."""


def local_path(value: str) -> Path:
    """Return the path of a local file or folder.

    Raises:
        BadParameter: the value is empty, or a URL, which would become the name of a folder.
    """
    if is_url(location(value)):
        raise typer.BadParameter(NOT_LOCAL)
    return Path(value)


ReportOption = Annotated[
    Path | None,
    typer.Option(
        "--report",
        rich_help_panel=OUTPUT,
        metavar="FILE",
        help="Also write a complete report: .html (one page without links to other files), .md or .json.",
        parser=local_path,
    ),
]

DefinitionsOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--opsets",
        rich_help_panel=DEFINITIONS,
        metavar="FOLDER",
        help="Add definitions from a folder with files <domain>/<operator>.yaml, or from a document that "
        "`opshift opset export` wrote. A folder with a releases.yaml is a complete tree and replaces the "
        "built-in definitions. May be repeated.",
    ),
]

AdaptersOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--adapters",
        rich_help_panel=DEFINITIONS,
        metavar="PATH",
        parser=_adapters_path,
        callback=_run_adapters_option,
        help="Run a Python file, or all Python files in a folder, with adapters for the definitions of "
        "--opsets. May be repeated.",
    ),
]

TargetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--target",
        "-t",
        rich_help_panel=TARGET,
        metavar="TARGET",
        autocompletion=completion.complete_target,
        help="An opset (17), the opset of a domain (ai.onnx.ml=3), a release of ONNX (onnx-1.12), or a "
        "program that runs the model (onnxruntime-1.20, tensorrt-10.1; `opshift targets` lists all): opsets "
        "that it supports stay, and newer ones are lowered. May be repeated.",
    ),
]

IrVersionOption = Annotated[
    str | None,
    typer.Option(
        "--ir-version",
        rich_help_panel=TARGET,
        metavar="N|keep",
        help="The IR version to convert to, or keep; --target is then optional. By default it changes only "
        "if the target requires it: to that of the first ONNX release with the target opset, or to the "
        "newest that a target release supports.",
    ),
]

AllowOption = Annotated[
    list[str] | None,
    typer.Option(
        "--allow",
        rich_help_panel=EXACTNESS,
        metavar="KIND",
        autocompletion=completion.complete_allow,
        help="Convert even if the result is not exact: approximate (results may differ in rounding), "
        "assume-nonnegative (indices are assumed not to be negative) or assume-nonempty (dimensions are "
        "assumed not to be 0). Or add many nodes or large constants for one node: large. Or use the nearest "
        "number for a constant that a type of --types cannot represent: clamp. Or give inputs and outputs "
        "wider types if a runtime lacks theirs (fit): interface-types. Or drop content "
        "that the IR version does not support: drop-metadata, drop-training, drop-devices. May be repeated.",
    ),
]

ShapeOption = Annotated[
    list[str] | None,
    typer.Option(
        "--shape",
        rich_help_panel=SHAPES,
        metavar="NAME=DIMS",
        help="Declare the shape of a graph input, such as 'x=2,3,H,?': sizes, names, and ? for unchanged "
        "dimensions. The result declares it, too, and may be valid for it only. Shapes of computed "
        "values can be declared if inference does not find them. May be repeated.",
    ),
]

InferShapesOption = Annotated[
    bool,
    typer.Option(
        "--infer-shapes",
        rich_help_panel=SHAPES,
        help="If nodes are refused, try again with the shapes that the package onnx infers, if it is "
        "installed. opshift infers shapes itself in any case.",
    ),
]

KeepInitializerInputsOption = Annotated[
    bool,
    typer.Option(
        "--keep-initializer-inputs",
        rich_help_panel=TARGET,
        help="Keep initializers among the graph inputs if the IR version rises from below 4, and do not fold "
        "them. By default, they are removed from the inputs, so runtimes treat them as constants. Callers "
        "can override initializers that are inputs.",
    ),
]

WithoutOption = Annotated[
    list[str] | None,
    typer.Option(
        "--without",
        rich_help_panel=TARGET,
        metavar="NAME",
        help="A domain (com.microsoft) or an operator (ai.onnx.Gelu) that the result may not contain: other "
        "operators express its nodes. May be repeated; --target is then optional.",
    ),
]

FoldOption = Annotated[
    bool,
    typer.Option(
        "--fold",
        rich_help_panel=TARGET,
        help="First replace values that are the same in every run by constants, and remove nodes without an "
        "effect, as `opshift simplify` does. convert and plan then need no --target.",
    ),
]

DomainOption = Annotated[
    str | None,
    typer.Option(
        "--domain",
        "-d",
        metavar="DOMAIN",
        autocompletion=completion.complete_domain,
        help="The domain, such as ai.onnx.ml.",
    ),
]

OpsetOption = Annotated[
    int | None,
    typer.Option(
        "--opset",
        metavar="N",
        autocompletion=completion.complete_opset,
        help="The opset of the domain (default: newest).",
    ),
]

InputArgument = Annotated[
    str,
    typer.Argument(
        metavar="IN",
        help="The model to read: a file, a URL, or - for standard input.",
        parser=location,
    ),
]

InputsArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="IN...",
        help="The models to read: files, folders, globs or URLs; or - for one on standard input.",
        parser=location,
    ),
]

OldModelArgument = Annotated[
    str,
    typer.Argument(
        metavar="OLD", help="The old model: a file, a URL, or - for standard input.", parser=location
    ),
]

NewModelArgument = Annotated[
    str,
    typer.Argument(
        metavar="NEW", help="The new model: a file, a URL, or - for standard input.", parser=location
    ),
]


OutArgument = Annotated[
    Path | None,
    typer.Argument(metavar="OUT", help="The file to write (default: stdout).", parser=local_path),
]

QuietOption = Annotated[
    bool, typer.Option("--quiet", "-q", help="Print results, findings and errors: no progress, no summary.")
]

OutputArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="OUT", help="The file or URL to write, or - for standard output.", parser=location
    ),
]

InPlaceOption = Annotated[
    bool,
    typer.Option("--in-place", rich_help_panel=OUTPUT, help="Overwrite IN with the result; omit OUT."),
]

ExternalOption = Annotated[
    Literal["copy", "link", "keep"],
    typer.Option(
        "--external",
        rich_help_panel=OUTPUT,
        help="If OUT is in another folder: copy external data files to it, create hard links to them, or "
        "keep them where they are. Current releases of the Python package onnx load no data files with "
        "hard links.",
    ),
]

CheckOption = Annotated[
    bool,
    typer.Option(
        "--check",
        rich_help_panel=VERIFICATION,
        help="Check the model against ONNX's specification before and after.",
    ),
]

ForceOption = Annotated[
    bool, typer.Option("--force", "-f", rich_help_panel=OUTPUT, help="Replace OUT if it exists.")
]

OperatorArgument = Annotated[
    str,
    typer.Argument(
        metavar="OPERATOR",
        autocompletion=completion.complete_operator,
        help="Conv, Softmax:11 or ai.onnx.ml.LabelEncoder.",
    ),
]

LevelOption = Annotated[
    Level, typer.Option("--level", help="Show findings of this level and more severe ones.")
]


class ConversionOptions(NamedTuple):
    """Options of `convert` and `plan`, in the order of the help; named as arguments of `convert_version`."""

    target: TargetOption = None
    exact: Annotated[
        bool,
        typer.Option(
            "--exact",
            rich_help_panel=TARGET,
            help="Convert to the newest opset that the program in --target supports, even if the model has "
            "an older one.",
        ),
    ] = False
    ir_version: IrVersionOption = None
    allow: AllowOption = None
    shapes: ShapeOption = None
    infer_shapes: InferShapesOption = False
    keep_initializer_inputs: KeepInitializerInputsOption = False
    without: WithoutOption = None
    types: Annotated[
        list[str] | None,
        typer.Option(
            "--types",
            rich_help_panel=TARGET,
            metavar="OLD=NEW",
            help="First convert an element type of the whole model, such as bfloat16=float, or "
            "float=float16, which requires --allow approximate. May be repeated; --target is then optional.",
        ),
    ] = None
    keep_interface: Annotated[
        bool,
        typer.Option(
            "--keep-interface",
            rich_help_panel=TARGET,
            help="With --types: inputs and outputs keep their element types.",
        ),
    ] = False
    fold: FoldOption = False
    recognize: Annotated[
        list[str] | None,
        typer.Option(
            "--recognize",
            rich_help_panel=TARGET,
            metavar="OPERATOR",
            help="Afterwards, recognize an operator of the result's opsets, such as Gelu: one node of it "
            "replaces the nodes that compute the same. `all` recognizes every operator with a function body. "
            "May be repeated; --target is then optional. --allow approximate accepts nodes that round "
            "differently, too.",
        ),
    ] = None


class ResultOptions(NamedTuple):
    """Options of `convert` that `plan` does not have; named as arguments of `convert_version`."""

    reversible: Annotated[
        bool,
        typer.Option(
            "--reversible",
            rich_help_panel=OUTPUT,
            help="Record replaced nodes in the model, so that converting back restores them.",
        ),
    ] = False
    bump: Annotated[
        bool,
        typer.Option(
            "--bump",
            rich_help_panel=OUTPUT,
            help="Raise model_version: MINOR if an opset or the IR version rises, else PATCH; "
            "more if inputs or outputs change.",
        ),
    ] = False
    check: CheckOption = False


def settings_of(*records: NamedTuple) -> Settings:
    """Return the options in records as `Settings`."""
    given: dict[str, Any] = {name: value for each in records for name, value in each._asdict().items()}
    target, ir_version = given.pop("target"), given.pop("ir_version")
    return Settings(tuple(target or ()), ir_version, nonempty_arguments(given))


def refuse_options(given: Mapping[str, object], reason: str, remedy: str = "remove it") -> None:
    """Raise UsageError for the first option with a true value; `reason` follows its name in the message."""
    for option in (option for option, value in given.items() if value):
        raise UsageError(f"{option} {reason}", remedy=remedy)


def registry_with(folders: list[Path] | None) -> Registry:
    """Return the registry for the values of `--opsets`: definition folders or operator-set documents."""
    from opshift.registry.registry import load_registry

    return load_registry(folders or ())


def expand_records(command: Callable[..., None]) -> Callable[..., None]:
    """Decorate a command: replace each parameter of a NamedTuple type by one option for each of its fields.

    The command still receives the NamedTuple, with the values of the options. A field without a default is
    not an option: it receives the name of the command.
    """
    parameters = signature(command, eval_str=True).parameters.values()
    records = {each.name: each.annotation for each in parameters if _is_record(each.annotation)}
    expanded = [option for each in parameters for option in _options_of_record(each)]

    @wraps(command)
    def run(**arguments: Any) -> None:
        for name, record in records.items():
            values = {
                field: arguments.pop(field) if field in record._field_defaults else command.__name__
                for field in record._fields
            }
            arguments[name] = record(**values)
        command(**arguments)

    vars(run)["__signature__"] = Signature(expanded)  # typer reads the options from this signature
    return run


def _is_record(annotation: object) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, tuple) and hasattr(annotation, "_fields")


def _options_of_record(parameter: Parameter) -> Iterator[Parameter]:
    record: type[NamedTuple] = parameter.annotation
    if not _is_record(record):
        yield parameter.replace(kind=Parameter.KEYWORD_ONLY)
        return
    types = get_type_hints(record, include_extras=True)
    for name, default in record._field_defaults.items():
        yield Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=types[name])
