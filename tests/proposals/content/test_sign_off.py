"""Sign-offs: valid for one content, never by the author, and written without other changes."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest
from support.proposals import proposal, replace_text, set_answers

from opshift.model.errors import UsageError
from opshift.proposals.content.folder import ProposalFolder, fingerprint
from opshift.proposals.content.reviewers import EVERYONE
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
    sign(ProposalFolder(path), "Grace")
    with pytest.raises(UsageError, match=reason):
        sign(ProposalFolder(path), name)


def test_changes_only_list_of_sign_offs(path: Path) -> None:
    before = (path / "proposal.yaml").read_text("utf-8").replace("sign_offs: []\n", "")
    sign(ProposalFolder(path), "Grace O'Hara", day=date(2026, 1, 31))
    sign(ProposalFolder(path), "Alan", day=date(2026, 2, 1))
    after = (path / "proposal.yaml").read_text("utf-8")
    assert after.startswith(before + "sign_offs:\n")
    assert [(each.name, each.date) for each in ProposalFolder(path).proposal.sign_offs] == [
        ("Grace O'Hara", "2026-01-31"),
        ("Alan", "2026-02-01"),
    ]


@pytest.mark.parametrize(
    "ending",
    ["sign_offs: []\n# the end\n", "", "sign_offs: []"],
    ids=["comment at the end", "no list", "no newline"],
)
def test_appends_sign_off_at_end(ending: str, path: Path) -> None:
    replace_text("proposal.yaml", "sign_offs: []\n", ending)(path)
    sign(ProposalFolder(path), "Grace")
    sign(ProposalFolder(path), "Alan")
    assert len(valid_sign_offs(ProposalFolder(path), EVERYONE)) == 2


@pytest.mark.parametrize(
    ("edit", "is_same"),
    [
        (set_answers(state="in-review"), True),
        (replace_text("proposal.yaml", "# A smooth", "# A very smooth"), True),
        (set_answers(title="Another"), False),
        (replace_text("operator.yaml", "default: 4.0", "default: 5.0"), False),
        (replace_text("reference.py", "half", "part"), False),
        (replace_text("examples.yaml", "-4.5", "-4"), False),
    ],
    ids=["state", "comment in proposal.yaml", "title", "default", "reference", "example"],
)
def test_fingerprint_covers_reviewed_content(edit: object, is_same: bool, path: Path) -> None:
    before = fingerprint(ProposalFolder(path))
    edit(path)  # type: ignore[operator]
    assert (fingerprint(ProposalFolder(path)) == before) is is_same
