"""Definitions up to the opsets of the installed ONNX: a checkout may contain operators of a later one.

The worked examples are proposals for the next opset. They are checked against these definitions, because they
may have been accepted in this checkout.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING
from unittest.mock import patch

from opshift.adapters.core import adapter_table
from opshift.model.operator_ids import canonical_domain
from opshift.opsets import OPSETS
from opshift.proposals.content.folder import version_block, without_key
from opshift.registry import registry
from opshift.registry.models import OperatorVersion

if TYPE_CHECKING:
    import onnx

NEWEST = {"ai.onnx": 28, "ai.onnx.ml": 5, "ai.onnx.preview": 1, "ai.onnx.preview.training": 1}


def is_released(version: OperatorVersion) -> bool:
    """Return whether the installed ONNX may have the version."""
    return version.since_version <= NEWEST.get(version.domain, 0)


def is_later(model: onnx.ModelProto) -> bool:
    """Return whether a model imports an opset that the installed ONNX does not have."""
    opsets = ((canonical_domain(each.domain), each.version) for each in model.opset_import)
    return any(version > NEWEST.get(domain, version) for domain, version in opsets)


def remove_later_versions(tree: Path) -> bool:
    """Remove later versions, removals and releases from a tree, and return whether there were any."""
    before = _texts(tree)
    for path in (each for each in tree.glob("*/*.yaml") if each.parent.name in NEWEST):
        text = _released_text(path)
        path.write_text(text, "utf-8") if text else path.unlink()
    for name in ("adapters", "cases", "pages", "references"):
        shutil.rmtree(tree / name, ignore_errors=True)
    releases = tree / "releases.yaml"
    kept = [line for line in releases.read_text("utf-8").splitlines() if _is_released(line)]
    releases.write_text("\n".join([*kept, ""]), "utf-8")
    return before != _texts(tree)


def _texts(tree: Path) -> list[str]:
    return [each.read_text("utf-8") for each in sorted((*tree.glob("*/*.yaml"), tree / "releases.yaml"))]


def _released_text(path: Path) -> str:
    """Return the text of a definition without later versions; empty if none remains."""
    text, newest = path.read_text("utf-8"), NEWEST[path.parent.name]
    versions = [int(each) for each in re.findall(r"^- since_version: (\d+)", text, re.MULTILINE)]
    removals = [int(each) for each in re.findall(r"^    removed_in: (\d+)", text, re.MULTILINE)]
    kept = [position for position, each in enumerate(versions) if each <= newest]
    if len(kept) < len(versions):
        head, _, _ = text.partition("- since_version:")
        text = head + "".join(version_block(path, each) for each in kept) if kept else ""
    if any(each > newest for each in removals):
        text = without_key(text, "removal")
    # A promotion deprecates the experimental operator in place.
    return without_key(text, "deprecation") if "preview" in path.parent.name else text


def _is_released(line: str) -> bool:
    opsets = re.findall(r"(ai\.onnx[\w.]*): (\d+)", line)
    return "released: false" not in line and all(int(opset) <= NEWEST[name] for name, opset in opsets)


@contextmanager
def released_definitions() -> Iterator[Path]:
    """Replace the default registry and the adapters within a `with` block; yield the definitions."""
    with TemporaryDirectory() as folder:
        tree = Path(folder) / "opsets"
        shutil.copytree(OPSETS, tree)
        if not remove_later_versions(tree):
            yield OPSETS
            return
        with ExitStack() as stack:
            stack.enter_context(adapter_table.temporary_adapters())
            for step in list(adapter_table._registered):
                if max(step.source, step.target) > NEWEST.get(step.domain, 1):
                    del adapter_table._registered[step]
            stack.callback(registry.default_registry.cache_clear)
            stack.enter_context(patch.object(registry, "OPSETS", tree))
            registry.default_registry.cache_clear()
            yield tree
