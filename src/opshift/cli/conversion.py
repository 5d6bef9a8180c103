"""One file: read, converted, compared with the original if that is wanted, and written."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from opshift.cli.failing import about
from opshift.cli.output import working

if TYPE_CHECKING:
    from opshift.converter.report import Report
    from opshift.converter.streaming.external import External
    from opshift.converter.verification.result import Verification
    from opshift.registry.catalogue import Registry


class Settings(NamedTuple):
    """What the command line says of every file."""

    target: list[str] | None
    ir_version: str | None
    allow: list[str]
    folders: list[Path] | None
    verify: bool
    inputs: Path | None
    tolerance: float | None
    reversible: bool
    check: bool = False
    external: External = "copy"
    force: bool = False
    adapters: list[Path] | None = None


class Converted(NamedTuple):
    """A file that was written.

    Attributes:
        source, out: as the command line names them.
        report: what was done.
        imports: the opsets before.
        sizes: of the files, before and after, in bytes.
        weights: the files with weights of the model, relative to its own.
        external: what became of these, if the output is in another folder.
        verification: what was compared, if anything was.
    """

    source: Path
    out: Path
    report: Report
    imports: dict[str, int]
    sizes: tuple[int, int]
    weights: tuple[str, ...]
    external: External
    verification: Verification | None

    @property
    def missing(self) -> tuple[str, ...]:
        """The files with weights that have to be brought beside the output."""
        is_home = self.out.parent.resolve() == self.source.parent.resolve()
        return () if is_home or self.external != "keep" else self.weights

    def as_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        compared = {"verification": self.verification.as_dict()} if self.verification else {}
        return {
            "input": self.source,
            "output": self.out,
            **self.report.as_dict(),
            "sizes": self.sizes,
            "external_data": self.weights,
            "external": self.external,
            **compared,
        }


def convert_file(
    source: Path, out: Path, settings: Settings, registry: Registry, *, quiet: bool
) -> Converted:
    """Convert a model and write it.

    Raises:
        OpshiftError: it cannot be read, converted, verified or written; nothing was written.
    """
    from opshift.converter.convert import convert
    from opshift.converter.opsets import opset_imports
    from opshift.converter.streaming.convert_file import converting

    imports: dict[str, int] = {}

    def change(model: Any) -> Report:
        with about(source):
            imports.update(opset_imports(model.opset_import, model.ir_version))
            return convert(
                model,
                settings.target or None,
                inplace=True,
                allow=settings.allow,
                ir_version=settings.ir_version,
                check=settings.check,
                reversible=settings.reversible,
                registry=registry,
            ).report

    with ExitStack() as stack:
        with working(f"Converting {source}", quiet=quiet):
            written = stack.enter_context(converting(source, out, change, settings.external, settings.force))
        verification = _verified(source, written.path, settings, registry, quiet)
    return Converted(
        source, out, written.report, imports, written.sizes, written.external, settings.external, verification
    )


@contextmanager
def read(source: Path) -> Iterator[tuple[Any, dict[str, int]]]:
    """A model without its large weights, and its opset imports."""
    from opshift.converter.opsets import opset_imports
    from opshift.converter.streaming.weights import reading

    with about(source), reading(source) as model:
        yield model, opset_imports(model.opset_import, model.ir_version)


def _verified(
    source: Path, converted: Path, settings: Settings, registry: Registry, quiet: bool
) -> Verification | None:
    """The comparison with what is written; weights in other files are where those of the original are."""
    if not settings.verify:
        return None
    from opshift.converter.files import read_model
    from opshift.converter.verification.verify import verify

    with working(f"Comparing {source} with its conversion", quiet=quiet), about(source):
        model = read_model(converted)
        return verify(source, model, settings.inputs, tolerance=settings.tolerance, registry=registry)
