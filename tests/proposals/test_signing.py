"""Sign-offs: valid for one content, never by the author, and written without other changes."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest
from support.proposals import proposal, said, text

from opshift.model.errors import UsageError
from opshift.proposals.content.folder import Folder, fingerprint
from opshift.proposals.content.sign_off import sign, valid_sign_offs


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return proposal("function", tmp_path / "sq")


@pytest.mark.parametrize(
    ("name", "reason"),
    [("Ada Example", "author"), (" ada  EXAMPLE", "author"), ("", "name"), ("Grace", "already signed")],
    ids=["author", "author in different case", "empty name", "repeated name"],
)
def test_refuses_sign_off(name: str, reason: str, path: Path) -> None:
    sign(Folder(path), "Grace")
    with pytest.raises(UsageError, match=reason):
        sign(Folder(path), name)


def test_changes_only_list_of_sign_offs(path: Path) -> None:
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
    "ending",
    ["sign_offs: []\n# the end\n", "", "sign_offs: []"],
    ids=["comment at the end", "no list", "no newline"],
)
def test_appends_sign_off_at_end(ending: str, path: Path) -> None:
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
    ids=["state", "comment in proposal.yaml", "title", "default", "reference", "example"],
)
def test_fingerprint_covers_reviewed_content(edit: object, is_same: bool, path: Path) -> None:
    before = fingerprint(Folder(path))
    edit(path)  # type: ignore[operator]
    assert (fingerprint(Folder(path)) == before) is is_same
