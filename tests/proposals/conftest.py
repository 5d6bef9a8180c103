"""Fixtures: proposals, and definition trees that accept them."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.proposals import Edit, proposal
from support.released import released_definitions
from support.workbench import OPSETS, Workbench

from opshift.proposals.content.folder import ProposalFolder
from opshift.proposals.content.sign_off import sign
from opshift.registry.fingerprints import LOCK, build_lock, lock_text
from opshift.registry.registry import Registry

REQUIRED_FILES = (
    *(
        f"ai.onnx/{name}.yaml"
        for name in ("Add", "Cast", "CastLike", "Constant", "Elu", "Exp", "GlobalMaxPool")
    ),
    *(f"ai.onnx/{name}.yaml" for name in ("Less", "Mul", "ReduceMax", "Sqrt", "Where")),
    "ai.onnx.preview/FlexAttention.yaml",
)
Make = Callable[..., Path]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Return a function that writes an edited proposal with two sign-offs."""

    def make(base: str, *edits: Edit, signed: bool = True) -> Path:
        path = proposal(base, tmp_path / base, *edits)
        for name in ("Grace Reviewer", "Alan Reviewer") if signed else ():
            sign(ProposalFolder(path), name)
        return path

    return make


@pytest.fixture(autouse=True, scope="module")
def released() -> Iterator[Path]:
    """Check the worked examples against the definitions that they extend; return their folder."""
    with released_definitions() as folder:
        yield folder


@pytest.fixture
def tree(tmp_path: Path, released: Path) -> Path:
    """Write a definition tree with the operators that the proposals need."""
    folder = tmp_path / "opsets"
    for name in (*REQUIRED_FILES, "releases.yaml", "types.yaml"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(released / name, folder / name)
    lock = lock_text(build_lock(Registry((folder,)).operators()))
    (folder / LOCK).write_text(lock, "utf-8")
    return folder


@pytest.fixture
def bench(tmp_path: Path) -> Workbench:
    shutil.copytree(
        OPSETS, tmp_path / "opsets", ignore=shutil.ignore_patterns("*.py", "*.binpb", "__pycache__")
    )
    return Workbench(tmp_path)
