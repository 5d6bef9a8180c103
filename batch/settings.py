"""Options that apply to all models of a batch, as plain data that workers receive."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from opshift.model.errors import UsageError

if TYPE_CHECKING:
    from opshift.converter.options import Options
    from opshift.converter.streaming.external_data import ExternalHandling


class Settings(NamedTuple):
    """Options of conversions; texts are those of the command line, and paths are read by each worker."""

    target: tuple[str, ...] = ()
    ir_version: str | None = None
    allow: tuple[str, ...] = ()
    check: bool = False
    reversible: bool = False
    bump: bool = False
    shapes: tuple[str, ...] = ()
    infer_shapes: bool = False
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
        """Return the options of a conversion in place, and run adapters and references.

        Raises the errors of `convert_version` about options, and those of definitions and of executed files.
        """
        from opshift.converter.options import Options
        from opshift.registry.registry import load_registry

        if self.references:
            from opshift.analysis.verification.references import load_references

            for each in self.references:
                load_references(each)
        for folder in self.opsets:
            if not folder.exists():
                raise UsageError(
                    "does not exist", place=str(folder), remedy="correct the path of definitions"
                )
        if self.adapters:
            from opshift.adapters.core.adapter_table import load_adapters

            for path in self.adapters:
                load_adapters(path)
        return Options.of(
            self.target or None,
            allow=self.allow,
            ir_version=self.ir_version,
            registry=load_registry(self.opsets),
            inplace=True,
            check=self.check,
            reversible=self.reversible,
            bump=self.bump,
            shapes=self.shapes,
            infer_shapes=self.infer_shapes,
        )

    def digest(self) -> str:
        """Return a digest of what decides about a result: options, definitions, adapters and plugins."""
        target = self.read().target
        files = (*self.opsets, *self.adapters, *map(Path, self.references), *self.custom_ops)
        inputs = (*filter(None, [self.inputs]), *(path for _, path in self.input_files))
        content = [
            sorted(target.opsets.items()),
            [target.ir_version, target.requested_ir_version],
            # `force` decides what may be replaced, but not by what
            self._replace(target=(), ir_version=None, force=False),
            _content_digest((*files, *inputs)),
            _plugins(),
        ]
        return sha256(json.dumps(content, default=str).encode()).hexdigest()[:16]


def _content_digest(paths: Iterable[Path]) -> str:
    content = sha256()
    for path in paths:
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file.is_file() and "__pycache__" not in file.parts:
                content.update(sha256(file.read_bytes()).digest())
    return content.hexdigest()


def _plugins() -> list[str]:
    """Return the installed packages with definitions or adapters, and their versions."""
    from opshift.adapters.core.adapter_table import ENTRY_POINT_GROUP
    from opshift.registry.installed import DEFINITIONS, installed_entry_points

    found = (
        each.dist for group in (DEFINITIONS, ENTRY_POINT_GROUP) for each in installed_entry_points(group)
    )
    return sorted({f"{each.name} {each.version}" for each in found if each is not None})


@cache  # for all models of a process; the digest distinguishes changed files
def options_of(settings: Settings, digest: str) -> Options:
    """Return the options of a conversion."""
    return settings.read()
