"""Options that apply to all models of a batch, as plain data that workers receive."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from opshift.model.shared_data import share_results

if TYPE_CHECKING:
    from opshift.converter.options import Options
    from opshift.converter.streaming.external_data import ExternalHandling
    from opshift.registry.registry import Registry


class Settings(NamedTuple):
    """Options of a batch: texts as on the command line, and paths of files that each worker reads."""

    target: tuple[str, ...] = ()
    ir_version: str | None = None
    arguments: tuple[tuple[str, Any], ...] = ()
    """Names and values of further arguments of `convert_version`, as `nonempty_arguments` returns them."""
    external: ExternalHandling = "copy"
    force: bool = False
    opsets: tuple[Path, ...] = ()
    adapters: tuple[Path, ...] = ()
    verify: bool = False
    inputs: Path | None = None
    input_files: tuple[tuple[str, Path], ...] = ()
    tolerance: float | None = None
    references: tuple[str, ...] = ()
    custom_ops: tuple[Path, ...] = ()

    def read(self) -> Options:
        """Return validated options for a conversion in place; run the adapter and reference files.

        Raises the errors of `convert_version` for invalid options, and errors of definitions and files.
        """
        from opshift.converter.options import Options

        self.load_references()
        return Options.of(
            self.target or None,
            ir_version=self.ir_version,
            registry=self.load_definitions(),
            inplace=True,
            **dict(self.arguments),
        )

    @property
    def types(self) -> tuple[tuple[str, str], ...]:
        """Pairs of an old and a new element type, from the argument `types`."""
        types = dict(self.arguments).get("types")
        if not types:
            return ()
        from opshift.converter.element_types.requested_types import read_types

        return read_types(types)

    def load_definitions(self) -> Registry:
        """Run the adapter files, and return the registry that includes the definitions in `opsets`."""
        from opshift.registry.registry import load_registry

        if self.adapters:
            from opshift.adapters.core.adapter_table import load_adapters

            for path in self.adapters:
                load_adapters(path)
        return load_registry(self.opsets)

    def load_references(self) -> None:
        """Run the modules and files in `references`, which compute private operators."""
        if self.references:
            from opshift.analysis.verification.references import load_references

            for each in self.references:
                load_references(each)


def nonempty_arguments(arguments: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    """Return names and values of arguments with a true value, sorted by name; lists become tuples."""
    given = ((name, value) for name, value in arguments.items() if value)
    return tuple(sorted((name, tuple(value) if isinstance(value, list) else value) for name, value in given))


# Cached for all models of a process; if a file of the settings changes, the digest changes, too.
@share_results
def options_of(settings: Settings, digest: str) -> Options:
    """Return the cached result of `settings.read()`; `digest` is the result of `options_digest`."""
    return settings.read()
