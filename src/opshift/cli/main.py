"""The command line: `opshift COMMAND ...`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from opshift.cli.commands import Commands
from opshift.cli.convert import convert, plan
from opshift.cli.failing import WRONG_USAGE
from opshift.cli.inspect import inspect
from opshift.cli.listing import list_operators, resolve
from opshift.cli.reach import reach
from opshift.cli.show import show
from opshift.cli.targets import targets

app = typer.Typer(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)
EXAMPLES = {
    "convert": ("model.onnx model17.onnx --target 17", "model.onnx --in-place -t onnx-1.12 -t ai.onnx.ml=3"),
    "plan": ("model.onnx --target onnxruntime-1.14", "model.onnx -t 11 --format json"),
    "reach": ("model.onnx",),
    "inspect": ("model.onnx",),
    "show": ("Softmax", "Softmax:11", "ai.onnx.ml.LabelEncoder --format json"),
    "list": ("--domain ai.onnx.ml", "--opset 17"),
    "resolve": ("Conv --opset 17",),
    "targets": ("",),
}
COMMANDS: dict[str, Callable[..., None]] = {
    "convert": convert,
    "plan": plan,
    "reach": reach,
    "inspect": inspect,
    "show": show,
    "list": list_operators,
    "resolve": resolve,
    "targets": targets,
}


def _version(wanted: bool) -> None:
    if wanted:
        from opshift import __version__

        typer.echo(f"opshift {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def start(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and leave.")
    ] = False,
) -> None:
    """Look up ONNX operators version by version, and move models from one opset to another.

    Exit codes: 0 done, 1 findings or a refusal, 2 wrong usage.
    """
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        raise typer.Exit(WRONG_USAGE)


for _name, _command in COMMANDS.items():
    _lines = [f"opshift {_name} {example}".rstrip() for example in EXAMPLES[_name]]
    app.command(_name, epilog="\n\n".join(("Examples:", *_lines)))(_command)


def main() -> None:
    """Run the command line and leave with its exit code."""
    app()
