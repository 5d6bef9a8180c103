"""`opshift simplify`."""

from __future__ import annotations

from opshift.batch.settings import Settings
from opshift.cli import options
from opshift.cli.conversion import convert_file, read_settings
from opshift.cli.conversion_text import write_conversion
from opshift.cli.options import Format
from opshift.cli.output import print_result
from opshift.cli.paths import output_file, require_file
from opshift.cli.streams import STDOUT
from opshift.cli.verification import VerifyOption


def simplify(
    source: options.InputArgument,
    out: options.OutputArgument = None,
    in_place: options.InPlaceOption = False,
    force: options.ForceOption = False,
    shape: options.ShapeOption = None,
    keep_initializer_inputs: options.KeepInitializerInputsOption = False,
    check: options.CheckOption = False,
    verify: VerifyOption = False,
    external: options.ExternalOption = "copy",
    folders: options.DefinitionsOption = None,
    quiet: options.QuietOption = False,
    form: options.FormatOption = Format.TEXT,
) -> None:
    """Fold a model at its opset.

    Values that are the same in every run become constants. Nodes that return their input, nodes that compute
    the same as an earlier one, and unread values are removed. Outputs stay equal, bit by bit.
    Nothing is folded that callers can override.
    """
    settings = Settings(
        check=check,
        shapes=tuple(shape or ()),
        keep_initializer_inputs=keep_initializer_inputs,
        fold=True,
        external=external,
        force=force,
        opsets=tuple(folders or ()),
        verify=verify,
    )
    conversion_options = read_settings(settings)
    source = require_file(source)
    path = output_file(source, out, in_place=in_place, force=force, form=form)
    is_quiet = quiet or form is Format.JSON
    converted = convert_file(source, path, settings, conversion_options, quiet=is_quiet)
    print_result(
        form,
        converted.as_dict(),
        lambda page: write_conversion(page, converted),
        quiet=quiet,
        on_stderr=path == STDOUT,
    )
