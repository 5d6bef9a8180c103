"""How a command fails: one message that says what, where, why and what to do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opshift.cli.options import Format
from opshift.cli.output import counted, emit_json
from opshift.converter.errors import ConversionRefused, InvalidModel, Refusal, UsageError
from opshift.registry.errors import OpshiftError, Place

if TYPE_CHECKING:
    from opshift.cli.page import Page
    from opshift.converter.legality.findings import Finding

FINDINGS = 1
WRONG_USAGE = 2


class Misused(Exception):
    """Wrong usage that is described by an error which elsewhere is none."""

    def __init__(self, error: OpshiftError) -> None:
        self.error = error
        super().__init__(str(error))


@contextmanager
def about(path: Path) -> Iterator[None]:
    """Name the file in errors that know only the place in it."""
    try:
        yield
    except UsageError:  # of the command line, not of the file
        raise
    except ConversionRefused as error:  # its refusals have their own places
        error.place = Place(node=str(path))
        raise
    except OpshiftError as error:
        if not error.place.file and str(error.place) != str(path):
            error.place = Place(node=": ".join(filter(None, (str(path), str(error.place)))))
        raise
    except OSError as error:
        error.filename = error.filename or str(path)
        raise
    except UnicodeDecodeError as error:
        raise InvalidModel("a name in the model is not UTF-8 text", place=str(path)) from error


def tell(error: OpshiftError, form: Format, name: str = "") -> None:
    """Print an error: text on stderr, or JSON on stdout, there with `name` if it has another outside."""
    from opshift.converter.legality.findings import IllegalModel
    from opshift.converter.verification.result import VerificationFailed

    if form is Format.JSON:
        emit_json(error_data(error, name))
        return
    refusals = error.refusals if isinstance(error, ConversionRefused) else ()
    findings = error.findings if isinstance(error, IllegalModel) else ()
    from opshift.cli.page import page_for

    page = page_for(on_stderr=True)
    where = f"{error.place}: " if str(error.place) else ""
    if refusals:
        _tell_refusals(page, where, refusals)
        return
    if findings:
        _tell_findings(page, error, findings)
        return
    page.line(f"error: {where}{error.reason}", style="bold red")
    if error.remedy:
        page.line(f"  help: {error.remedy}")
    if isinstance(error, VerificationFailed) and error.verification.outputs:
        from opshift.cli.verification import write_verification

        write_verification(page, error.verification)


def error_data(error: OpshiftError, name: str = "") -> dict[str, Any]:
    """An error as plain data, with `name` if it has another outside."""
    from opshift.converter.legality.findings import IllegalModel
    from opshift.converter.verification.result import VerificationFailed

    kind = {"error": name} if name else {}
    found: dict[str, Any] = {**error.as_dict(), **kind, "refusals": []}
    if isinstance(error, ConversionRefused):
        found["refusals"] = [asdict(each) for each in error.refusals]
    if isinstance(error, IllegalModel):
        found["findings"] = [asdict(each) for each in error.findings]
    if isinstance(error, VerificationFailed):
        found["verification"] = error.verification.as_dict()
    return found


def _tell_refusals(page: Page, where: str, refusals: Sequence[Refusal]) -> None:
    from opshift.cli.summary import write_refusals

    nodes = counted(len(refusals), "node")
    page.line(f"error: {where}{nodes} cannot be converted; nothing was written", style="bold red")
    write_refusals(page, refusals, most=10)


def _tell_findings(page: Page, error: OpshiftError, findings: Sequence[Finding]) -> None:
    from opshift.cli.findings import write_findings

    page.line(f"error: {error.reason}; nothing was written", style="bold red")
    write_findings(page, findings)
