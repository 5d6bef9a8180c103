"""Digest of the options of a batch; a later run with a different digest converts all models again."""

import json
from collections.abc import Iterable
from hashlib import file_digest, sha256
from pathlib import Path

from opshift.adapters.core.adapter_table import ENTRY_POINT_GROUP
from opshift.batch.settings import Settings
from opshift.registry.installed import DEFINITIONS, installed_entry_points


def options_digest(settings: Settings) -> str:
    """Return a digest of everything but the model that affects a result: options, their files, plugins."""
    target = settings.read().target
    code = (*settings.opsets, *settings.adapters, *map(Path, settings.references), *settings.custom_ops)
    inputs = (*filter(None, [settings.inputs]), *(path for _, path in settings.input_files))
    content = [
        sorted(target.opsets.items()),
        sorted(target.limits.items()),
        [target.ir_version, target.requested_ir_version],
        # `force` determines which files may be replaced, but not their content
        settings._replace(target=(), ir_version=None, force=False),
        list(content_digests((*code, *inputs))),
        plugins(),
    ]
    return sha256(json.dumps(content, default=str).encode()).hexdigest()[:16]


def content_digests(paths: Iterable[Path]) -> Iterable[str]:
    """Yield the SHA-256 digests of files, and of all files in folders except `__pycache__`."""
    for path in paths:
        for each in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if each.is_file() and "__pycache__" not in each.parts:
                with each.open("rb") as file:
                    yield file_digest(file, "sha256").hexdigest()


def plugins() -> list[str]:
    """Return names and versions of the installed packages that provide definitions or adapters."""
    found = (
        each.dist for group in (DEFINITIONS, ENTRY_POINT_GROUP) for each in installed_entry_points(group)
    )
    return sorted({f"{each.name} {each.version}" for each in found if each is not None})
