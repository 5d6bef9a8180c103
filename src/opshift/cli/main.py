"""Entry point of the command line: `opshift COMMAND ...`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Annotated, NamedTuple, cast

import typer
from typer.main import get_command, get_group

from opshift.cli.commands import (
    AfterImports,
    AnyCommand,
    CommandGroup,
    HelpCommand,
    examples_text,
    require_subcommand,
)
from opshift.cli.paths import replace_closed_streams
from opshift.model.process_state import exit_on_signals
from opshift.model.stream_limits import HOSTS_VARIABLE, LIMIT_VARIABLE
from opshift.version import package_version


class Command(NamedTuple):
    """Command, or group of subcommands: the attribute `function` of the module `opshift.cli.<module>`.

    The module is imported on first use, so that other commands start faster. `summary` is the first sentence
    of the command's help, for the list of all commands. The help shows `examples`, which are arguments of the
    command, and only the options in `main_options` if there are any.
    """

    name: str
    summary: str
    module: str
    function: str
    examples: tuple[str, ...] = ()
    main_options: tuple[str, ...] = ()

    def load(self) -> AnyCommand:
        """Import the module, and return the command or the group of subcommands."""
        implementation = getattr(import_module(f"opshift.cli.{self.module}"), self.function)
        if isinstance(implementation, typer.Typer):
            implementation.info.name = self.name
            command: AnyCommand = get_group(implementation)
        else:
            single = typer.Typer(add_completion=False, rich_markup_mode=None)
            epilog = examples_text(self.name, self.examples)
            options = {"main_options": frozenset(self.main_options)}
            kind = type("MainOptionsCommand", (HelpCommand,), options)
            single.command(self.name, cls=kind, epilog=epilog)(implementation)
            command = cast("AnyCommand", get_command(single))
        command.rich_help_panel = self.section
        return command

    @property
    def section(self) -> str:
        """Title of the section of `opshift --help` that lists the command."""
        if self.module == "proposal":
            return "Proposals"
        return "Operators and opsets" if self.module.startswith("registry.") else "Models"


COMMANDS = [
    Command(
        "convert",
        "Convert models to another opset.",
        "convert",
        "convert",
        (
            "model.onnx model17.onnx --target 17",
            "model.onnx --in-place -t onnx-1.12 -t ai.onnx.ml=3",
            "model.onnx model8.onnx --ir-version 8",
            "model.onnx model17.onnx -t 17 --verify",
            "- - -t 17 < model.onnx > model17.onnx",
            "*.onnx models/ --out converted -t 17 --jobs 4",
        ),
        (
            "--target",
            "--types",
            "--without",
            "--allow",
            "--shape",
            "--out",
            "--in-place",
            "--force",
            "--verify",
            "--ir-version",
            "--help",
            "--help-all",
        ),
    ),
    Command(
        "plan",
        "Show the changes that `convert` would make, and their cost.",
        "plan",
        "plan",
        (
            "model.onnx --target onnxruntime-1.14",
            "model.onnx -t 11 --format json",
            "zoo/ 'more/*.onnx' -t 17 --jobs 4",
        ),
    ),
    Command(
        "simplify",
        "Fold a model at its opset.",
        "convert",
        "simplify",
        ("model.onnx small.onnx", "model.onnx --in-place --shape 'image=1,3,32,32' --verify"),
    ),
    Command(
        "fit",
        "Convert a model so that a runtime implements all of its nodes.",
        "fit",
        "fit",
        (
            "model.onnx fitted.onnx --runtime onnxruntime-1.20.1",
            "model.onnx --in-place -r device.yaml --allow approximate",
        ),
    ),
    Command(
        "node",
        "Show what nodes, given as text, become at another opset.",
        "registry.node",
        "node",
        ("'Softmax(x, axis=1)' --opset 9 --target 13", "- -t 11 < model.txt"),
    ),
    Command(
        "reach",
        "Show the opsets to which a model can be converted.",
        "reach",
        "reach",
        ("model.onnx", "zoo/ --format json"),
    ),
    Command(
        "runs",
        "Show which runtimes run a model.",
        "runs",
        "runs",
        ("model.onnx", "model.onnx --runtime onnxruntime-1.20.1 -r tensorrt-10.1", "zoo/ -r ./device.yaml"),
    ),
    Command(
        "doctor",
        "Check models against their declared opsets and IR versions.",
        "doctor",
        "doctor",
        ("model.onnx", "zoo/ --quiet", "model.onnx fixed.onnx --fix"),
    ),
    Command(
        "compare",
        "Show what changed between two versions of a model.",
        "compare",
        "compare",
        ("v1.onnx v2.onnx",),
    ),
    Command(
        "diff-model",
        "Show which nodes of a model were added, removed and changed.",
        "diff_model",
        "diff_model",
        ("old.onnx new.onnx", "old.onnx new.onnx --report changes.html"),
    ),
    Command(
        "check",
        "Check models against ONNX's specification.",
        "check",
        "check",
        ("model.onnx", "zoo/ --target 17 --format json", "--files-from list.txt", "--rules"),
    ),
    Command(
        "inspect",
        "Show a model's opsets, operators, inputs and outputs.",
        "inspect",
        "inspect",
        ("model.onnx",),
    ),
    Command("textconv", "Print a model as text for git diff.", "diff_model", "textconv", ("model.onnx",)),
    Command(
        "show",
        "Show an operator: signature, descriptions and all versions.",
        "registry.show",
        "show",
        ("Softmax", "Softmax:11", "ai.onnx.ml.LabelEncoder --format json"),
    ),
    Command(
        "list",
        "List the operators of an opset that match all filters.",
        "registry.listing",
        "list_operators",
        (
            "--opset 3 --domain ai.onnx.ml",
            "--opset 20 --accepts bfloat16",
            "Softmax --accepts bfloat16 --versions first",
            "--changed 13 17 --function",
            "--status removed --format json",
        ),
    ),
    Command(
        "resolve",
        "Print the version of an operator at an opset.",
        "registry.listing",
        "resolve",
        ("Conv --opset 17",),
    ),
    Command(
        "diff",
        "Show the changes between two operator versions or opsets.",
        "registry.changes",
        "diff",
        ("Clip 6 11", "--opset 12 13", "Softmax 11 13 --mode backward", "--explain default-changed"),
    ),
    Command(
        "breaking",
        "Find changes that break models.",
        "registry.changes",
        "breaking",
        ("opsets --against main", "acme --against acme-1.0 --mode full", "--policy types-free"),
    ),
    Command(
        "stubs",
        "Write a Python module that builds the nodes of an opset.",
        "registry.exports",
        "stubs",
        ("ops17.py --opset 17", "ml.py --domain ai.onnx.ml"),
    ),
    Command(
        "lint",
        "Find mistakes in definitions of operators.",
        "registry.lint",
        "lint",
        ("acme --adapters acme/adapters", "opsets --format json"),
    ),
    Command(
        "site",
        "Write the operator catalogue as a static site.",
        "registry.exports",
        "site",
        ("site", "public --url https://example.com/operators --force", "site --opsets acme"),
    ),
    Command(
        "data",
        "Print all operator definitions as JSON.",
        "registry.exports",
        "data",
        ("", "--schema", "--opsets acme"),
    ),
    Command("targets", "List the releases that --target accepts.", "registry.listing", "targets", ("",)),
    Command(
        "runtimes",
        "List runtimes, the kernels of one runtime, or its kernels of one operator.",
        "registry.runtimes",
        "runtimes",
        ("", "onnxruntime-1.31", "onnxruntime-1.20.1 Resize", "device.yaml Conv --format json"),
    ),
    Command(
        "explain",
        "Explain an error of another tool about a model, or a refusal of opshift.",
        "explain",
        "explain",
        ('"Unsupported model IR version: 10"', ""),
    ),
    Command(
        "opset",
        "Export and load operator sets, copy the definitions, and release opsets.",
        "registry.opset",
        "opset",
    ),
    Command("proposal", "Write, check, review and accept operator proposals.", "proposal", "proposal"),
]
"""All commands, in the order of the help."""


LOADING_COMMANDS = ("runs",)
"""Commands that call `AfterImports.run` themselves, after they have loaded data that they keep."""


class LazyCommandGroup(CommandGroup):
    """Group of the commands in `COMMANDS`, which imports the module of a command on first use."""

    def list_commands(self, ctx: object) -> list[str]:
        """Return the names of all commands in the order of the help."""
        return [command.name for command in COMMANDS]

    def summaries(self, ctx: typer.Context) -> Iterator[tuple[str, str, str]]:
        """Yield the section, name and summary of all commands, without importing their modules."""
        yield from ((each.section, each.name, each.summary) for each in COMMANDS)

    def get_command(self, ctx: object, cmd_name: str) -> AnyCommand | None:
        """Import a command and return it, or return `None` if the name is unknown."""
        # For an unknown name, all commands are loaded, so that the parser can suggest a similar name.
        for entry in [each for each in COMMANDS if each.name == cmd_name] or COMMANDS:
            if entry.name not in self.commands:
                self.add_command(entry.load(), entry.name)
        found = cast("typer.Context", ctx).obj
        # another program may pass an object of its own
        if isinstance(found, AfterImports) and cmd_name not in LOADING_COMMANDS:
            found.run()
        return cast("AnyCommand | None", self.commands.get(cmd_name))


app = typer.Typer(
    cls=LazyCommandGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _print_version(context: typer.Context, is_requested: bool) -> None:
    if is_requested and not context.resilient_parsing:
        typer.echo(f"opshift {package_version()}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def start(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit."),
    ] = False,
    max_stream: Annotated[
        int | None,
        typer.Option(
            metavar="BYTES",
            min=0,
            help="The maximum size of models from pipes, and from web servers that send no ranges.",
        ),
    ] = None,
    redirect_host: Annotated[
        list[str] | None,
        typer.Option(metavar="HOST", help="A host to which web servers may redirect; * for all."),
    ] = None,
) -> None:
    """Look up ONNX operators by version, and convert models between opsets.

    Exit codes: 0 success, 1 findings or errors, 2 wrong usage.
    """
    # environment variables, because the processes that convert models inherit them
    if max_stream is not None:
        os.environ[LIMIT_VARIABLE] = str(max_stream)
    if redirect_host:
        os.environ[HOSTS_VARIABLE] = ",".join(redirect_host)
    require_subcommand(context)


def main(after_imports: Callable[[], None] | None = None) -> None:
    """Run the command line and exit with its exit code.

    `after_imports` is called when the modules of the command are imported, and for `LOADING_COMMANDS` their
    data loaded, before the command reads a model.
    """
    exit_on_signals()
    replace_closed_streams()
    app(obj=after_imports and AfterImports(after_imports))
