"""Entry point of the command line: `opshift COMMAND ...`."""

from __future__ import annotations

from importlib import import_module
from typing import Annotated, Any

import typer
from typer.main import get_command, get_group

from opshift.cli.commands import CommandGroup
from opshift.cli.errors import EXIT_WRONG_USAGE

EXAMPLES = {
    "convert": (
        "model.onnx model17.onnx --target 17",
        "model.onnx --in-place -t onnx-1.12 -t ai.onnx.ml=3",
        "model.onnx model8.onnx --ir-version 8",
        "model.onnx model17.onnx -t 17 --verify",
        "*.onnx models/ --out converted -t 17 --jobs 4",
    ),
    "plan": ("model.onnx --target onnxruntime-1.14", "model.onnx -t 11 --format json"),
    "reach": ("model.onnx",),
    "doctor": ("model.onnx", "model.onnx fixed.onnx --fix"),
    "compare": ("v1.onnx v2.onnx",),
    "check": ("model.onnx", "*.onnx --level info", "--rules"),
    "inspect": ("model.onnx",),
    "show": ("Softmax", "Softmax:11", "ai.onnx.ml.LabelEncoder --format json"),
    "list": ("--domain ai.onnx.ml", "--opset 17"),
    "resolve": ("Conv --opset 17",),
    "diff": ("Clip 6 11", "--opset 12 13", "Softmax 11 13 --mode backward", "--explain default-changed"),
    "breaking": ("opsets --against main", "acme --against acme-1.0 --mode full", "--policy types-free"),
    "targets": ("",),
}

COMMAND_LOCATIONS = {
    "convert": "convert.convert",
    "plan": "convert.plan",
    "reach": "reach.reach",
    "doctor": "doctor.doctor",
    "compare": "compare.compare",
    "check": "check.check",
    "inspect": "inspect.inspect",
    "show": "show.show",
    "list": "listing.list_operators",
    "resolve": "listing.resolve",
    "diff": "diff.diff",
    "breaking": "breaking.breaking",
    "targets": "listing.targets",
    "opset": "opset.opset",
    "proposal": "proposal.proposal",
}
"""Module and attribute of each command: a function, or a group of subcommands."""


class LazyCommandGroup(CommandGroup):
    """Group of the commands in `COMMAND_LOCATIONS`, which imports the module of a command on first use."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of all commands in the order of the help."""
        return list(COMMAND_LOCATIONS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command, or `None` if the name is unknown."""
        # for an unknown name all commands are loaded, so that the parser can suggest a similar one
        for name in [cmd_name] if cmd_name in COMMAND_LOCATIONS else COMMAND_LOCATIONS:
            if name not in self.commands:
                command = _load_command(name)
                command.rich_markup_mode = self.rich_markup_mode
                self.add_command(command, name)
        return self.commands.get(cmd_name)


def _load_command(name: str) -> Any:
    module, _, attribute = COMMAND_LOCATIONS[name].partition(".")
    implementation = getattr(import_module(f"opshift.cli.{module}"), attribute)
    if isinstance(implementation, typer.Typer):
        implementation.info.name = name
        return get_group(implementation)
    examples = [f"opshift {name} {example}".rstrip() for example in EXAMPLES[name]]
    single = typer.Typer(add_completion=False)
    single.command(name, epilog="\n\n".join(("Examples:", *examples)))(implementation)
    return get_command(single)


app = typer.Typer(
    cls=LazyCommandGroup,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)


def _version(is_requested: bool) -> None:
    if is_requested:
        from opshift import __version__  # reads the package's metadata, which no other option needs

        typer.echo(f"opshift {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def start(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Look up ONNX operators by version, and convert models between opsets.

    Exit codes: 0 success, 1 findings or a refused conversion, 2 wrong usage.
    """
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        raise typer.Exit(EXIT_WRONG_USAGE)


def main() -> None:
    """Run the command line and exit with its exit code."""
    app()
