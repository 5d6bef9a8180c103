"""Compare the outputs of a converted model and its original, and define the options for this."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from opshift.batch.settings import Settings
from opshift.cli.errors import add_file_to_errors
from opshift.cli.options import VERIFICATION
from opshift.cli.paths import model_input, named_files
from opshift.cli.progress import show_progress
from opshift.model.errors import UsageError

if TYPE_CHECKING:
    from opshift.analysis.verification.result import Verification
    from opshift.model.messages import ModelProto
    from opshift.registry.registry import Registry

VerifyOption = Annotated[
    bool,
    typer.Option(
        "--verify",
        rich_help_panel=VERIFICATION,
        help="Run both models on the same inputs, and write nothing unless the outputs agree.",
    ),
]

VerifyInputsOption = Annotated[
    Path | None,
    typer.Option(
        "--inputs",
        rich_help_panel=VERIFICATION,
        metavar="FILE",
        help="With --verify: an .npz file of inputs; missing inputs are generated.",
    ),
]

VerifyInputFilesOption = Annotated[
    list[str] | None,
    typer.Option(
        "--input",
        rich_help_panel=VERIFICATION,
        metavar="NAME=FILE",
        help="With --verify: an input from an .npy or .npz file, or from a .pb file with a TensorProto. "
        "May be repeated.",
    ),
]

ToleranceOption = Annotated[
    float | None,
    typer.Option(
        "--tolerance",
        rich_help_panel=VERIFICATION,
        metavar="X",
        min=0.0,
        help="With --verify: the maximum difference of floats, relative and absolute.",
    ),
]

ReferencesOption = Annotated[
    list[str] | None,
    typer.Option(
        "--verify-with",
        rich_help_panel=VERIFICATION,
        metavar="MODULE",
        help="With --verify: a module or Python file with references of private operators, see "
        "`opshift.reference`. It is executed. May be repeated.",
    ),
]

CustomOpsOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--custom-ops",
        rich_help_panel=VERIFICATION,
        metavar="LIBRARY",
        help="With --verify: a library of custom operators for onnxruntime. May be repeated.",
    ),
]


class ComparisonOptions(NamedTuple):
    """Options for comparing a converted model with its original, in the order of the help."""

    verify: VerifyOption = False
    inputs: VerifyInputsOption = None
    input_files: VerifyInputFilesOption = None
    tolerance: ToleranceOption = None
    references: ReferencesOption = None
    custom_ops: CustomOpsOption = None

    def settings(self, others: Settings | None = None) -> Settings:
        """Add the options to the settings `others`; raise UsageError if they require a missing `--verify`."""
        needs_verify = (self.inputs, self.input_files, self.references, self.custom_ops)
        if not self.verify and (any(needs_verify) or self.tolerance is not None):
            reason = "--input, --inputs, --tolerance, --verify-with and --custom-ops require --verify"
            raise UsageError(reason, remedy="add --verify")
        return (others or Settings())._replace(
            verify=self.verify,
            inputs=self.inputs,
            input_files=tuple(named_files(self.input_files or [])),
            tolerance=self.tolerance,
            references=tuple(self.references or ()),
            custom_ops=tuple(self.custom_ops or ()),
        )


def compare_with_source(
    source: str,
    result: ModelProto,
    settings: Settings,
    registry: Registry,
    *,
    quiet: bool,
    data_file: Path | None = None,
) -> Verification:
    """Compare the outputs of a model file and its conversion `result`; raise an error if they differ."""
    from opshift.batch.convert_model import verify_conversion

    message = f"Comparing {source} with its conversion"
    with show_progress(message, quiet=quiet) as progress, add_file_to_errors(source):
        return verify_conversion(model_input(source), result, settings, registry, progress, data_file)
