"""The state of a proposal is changed in the text of `proposal.yaml`."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.proposals import proposal, replace_text

from opshift.model.errors import UsageError
from opshift.proposals.content.folder import ProposalFolder, edited_proposal
from opshift.registry.errors import DefinitionError
from opshift.registry.yaml_edits import append_item, set_value


def accepted(path: Path) -> str:
    return edited_proposal(
        ProposalFolder(path), "state", "accepted", lambda before: set_value(before, "state", "accepted")
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("state: in-review\n", "state: accepted\n"),
        ("state: in-review # since May\n", "state: accepted # since May\n"),
        ("\"state\": 'in-review'\n", '"state": accepted\n'),
        ("state:\n  in-review\n", "state:\n  accepted\n"),
    ],
    ids=["word", "comment", "quotes", "next line"],
)
def test_changes_only_the_state(before: str, after: str, tmp_path: Path) -> None:
    path = proposal("function", tmp_path / "sq", replace_text("proposal.yaml", "state: in-review\n", before))
    text = (path / "proposal.yaml").read_text("utf-8")
    assert accepted(path) == text.replace(before, after)


@pytest.mark.parametrize("value", ["3", "{a: 1}", ""])
def test_appends_only_to_lists(value: str) -> None:
    with pytest.raises(DefinitionError, match="'signs' is not a list"):
        append_item(f"signs: {value}\n", "signs", "x")


def test_adds_missing_state(tmp_path: Path) -> None:
    path = proposal("function", tmp_path / "sq", replace_text("proposal.yaml", "state: in-review\n", ""))
    text = (path / "proposal.yaml").read_text("utf-8")
    assert accepted(path) == text + "state: accepted\n"


def test_refuses_state_that_other_answers_repeat(tmp_path: Path) -> None:
    edits = (
        replace_text("proposal.yaml", "state: in-review\n", "state: *state\n"),
        replace_text("proposal.yaml", "name: Ada Example", "name: &state in-review"),
    )
    path = proposal("function", tmp_path / "sq", *edits)
    with pytest.raises(UsageError, match=r"cannot change 'state' in proposal\.yaml") as refused:
        accepted(path)
    assert refused.value.remedy
