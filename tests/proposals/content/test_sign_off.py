"""Sign-offs: valid for one content, never by the author, and written without other changes."""

from __future__ import annotations

import re
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


GRACE = "{name: Grace, date: '2026-11-01', fingerprint: FINGERPRINT}"
FIELDS = "-\n  name: Grace\n  date: 2026-11-01"
LAYOUTS = {
    "list in brackets": f"sign_offs: [{GRACE}]\n",
    "list in brackets on the next line": f"sign_offs:\n  [{GRACE}]\n",
    "trailing comma and comments": f"sign_offs: [ # all\n  {GRACE}, # first\n]\n",
    "indented list": f"sign_offs:\n  - {GRACE}\n",
    "empty line between fields": f"sign_offs:\n{FIELDS}\n\n  fingerprint: FINGERPRINT\n",
    "folded text": f"sign_offs:\n{FIELDS}\n  fingerprint: >-\n    FINGERPRINT\n\n# end\n",
    "comments between items": f"sign_offs:\n# all\n\n- {GRACE} # first\n\n# end\n",
    "no line break at the end": f"sign_offs:\n- {GRACE}",
    "quoted key": f"'sign_offs':\n- {GRACE}\n",
    "end of the document": f"sign_offs:\n- {GRACE}\n...\n",
}


@pytest.mark.parametrize("newline", ["\n", "\r\n"], ids=["LF", "CRLF"])
@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_appends_sign_off_to_list(layout: str, newline: str, path: Path) -> None:
    file, current = path / "proposal.yaml", fingerprint(ProposalFolder(path))
    before = file.read_text("utf-8").replace("sign_offs: []\n", layout.replace("FINGERPRINT", current))
    before = before.replace("\n", newline)
    file.write_bytes(before.encode())
    sign(ProposalFolder(path), "Zoë", day=date(2026, 1, 31))
    sign(ProposalFolder(path), "Alan", day=date(2026, 2, 1))
    signed = valid_sign_offs(ProposalFolder(path), EVERYONE)
    assert [each.name for each in signed] == ["Grace", "Zoë", "Alan"]
    after = file.read_bytes().decode()
    added = r", \{name: '.*?\}|^ *- \{name: '.*?\}\r?\n"
    assert re.sub(added, "", after, flags=re.MULTILINE).rstrip() == before.rstrip()
    assert after.count("\r\n") == after.count("\n") * (newline == "\r\n")


@pytest.mark.parametrize(
    ("name", "layout"),
    [
        pytest.param("Alan", f"sign_offs: &all\n- {GRACE}\n", id="anchor"),
        pytest.param("Alan\nTuring", "sign_offs: []\n", id="name of two lines"),
    ],
)
def test_refuses_sign_off_that_would_change_other_content(name: str, layout: str, path: Path) -> None:
    replace_text("proposal.yaml", "sign_offs: []\n", layout)(path)
    before = (path / "proposal.yaml").read_bytes()
    with pytest.raises(UsageError, match="without changing other content") as refused:
        sign(ProposalFolder(path), name)
    assert refused.value.remedy
    assert (path / "proposal.yaml").read_bytes() == before


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
