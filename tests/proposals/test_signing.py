"""A sign-off is of one content, by somebody other than the author; nothing else in the file changes."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest
from support.proposals import proposal, said, text

from opshift.converter.errors import UsageError
from opshift.proposals.fingerprint import fingerprint
from opshift.proposals.folder import Folder
from opshift.proposals.signing import sign, valid_sign_offs


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return proposal("function", tmp_path / "sq")


@pytest.mark.parametrize(
    ("name", "why"),
    [("Ada Example", "author"), (" ada  EXAMPLE", "author"), ("", "name"), ("Grace", "already signed")],
    ids=["the author", "the author, written otherwise", "nobody", "somebody again"],
)
def test_a_sign_off_is_refused(name: str, why: str, path: Path) -> None:
    sign(Folder(path), "Grace")
    with pytest.raises(UsageError, match=why):
        sign(Folder(path), name)


def test_only_the_list_changes(path: Path) -> None:
    before = (path / "proposal.yaml").read_text("utf-8").replace("sign_offs: []\n", "")
    sign(Folder(path), "Grace O'Hara", date(2026, 1, 31))
    sign(Folder(path), "Alan", date(2026, 2, 1))
    after = (path / "proposal.yaml").read_text("utf-8")
    assert after.startswith(before + "sign_offs:\n")
    assert [(each.name, each.date) for each in Folder(path).proposal.sign_offs] == [
        ("Grace O'Hara", "2026-01-31"),
        ("Alan", "2026-02-01"),
    ]


@pytest.mark.parametrize(
    "ending", ["sign_offs: []\n# the end\n", "", "sign_offs: []"], ids=["a comment", "no list", "no newline"]
)
def test_a_sign_off_finds_its_place(ending: str, path: Path) -> None:
    text("proposal.yaml", "sign_offs: []\n", ending)(path)
    sign(Folder(path), "Grace")
    sign(Folder(path), "Alan")
    assert len(valid_sign_offs(Folder(path))) == 2


@pytest.mark.parametrize(
    ("edit", "is_same"),
    [
        (said(state="in-review"), True),
        (text("proposal.yaml", "# A smooth", "# A very smooth"), True),
        (said(title="Another"), False),
        (text("operator.yaml", "default: 4.0", "default: 5.0"), False),
        (text("reference.py", "half", "part"), False),
        (text("examples.yaml", "-4.5", "-4"), False),
    ],
    ids=["the state", "a comment in proposal.yaml", "the title", "a default", "the reference", "an example"],
)
def test_the_fingerprint_is_of_what_is_reviewed(edit: object, is_same: bool, path: Path) -> None:
    before = fingerprint(Folder(path))
    edit(path)  # type: ignore[operator]
    assert (fingerprint(Folder(path)) == before) is is_same
