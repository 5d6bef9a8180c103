"""Facts about rules: pages exist, and addresses follow from the package's metadata."""

from __future__ import annotations

import re
from email.message import Message
from importlib import metadata
from pathlib import Path

import pytest

from opshift.cli.findings.finding import rules_of

ROOT = Path(__file__).parents[3]
COMMANDS = ["check", "plan", "reach", "runs", "convert", "doctor", "lint", "breaking"]


@pytest.mark.parametrize("command", COMMANDS)
def test_rules_are_described_on_their_page(command: str) -> None:
    found = rules_of(command)
    assert found
    for rule in found.values():
        file, _, anchor = rule.page.partition("#")
        page = (ROOT / file).read_text("utf-8")
        assert rule.id in page
        headings = re.findall(r"^#+ (.*)$", page, re.MULTILINE)
        anchors = {re.sub(r"[^\w -]", "", each.lower()).replace(" ", "-") for each in headings}
        assert not anchor or anchor in anchors
        assert rule.title.endswith(".")
        # HTML is forbidden in the texts of SARIF
        assert not re.search(r"<\w", re.sub(r"`[^`]*`", "", rule.title + rule.advice))


def test_addresses_of_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    declared = Message()
    declared["Project-URL"] = "Issues, https://example.com/opshift/issues"
    declared["Project-URL"] = "Repository, https://example.com/opshift/"
    monkeypatch.setattr(metadata, "metadata", lambda _: declared)
    address = rules_of("plan")["type.unsupported"].help_uri
    assert address == "https://example.com/opshift/blob/main/docs/refusals.md#typeunsupported"


def test_no_address_without_declared_repository(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata, "metadata", lambda _: Message())
    assert rules_of("plan")["type.unsupported"].help_uri == ""


def test_no_address_without_installation(monkeypatch: pytest.MonkeyPatch) -> None:
    def find(name: str) -> Message:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "metadata", find)
    assert rules_of("plan")["type.unsupported"].help_uri == ""
