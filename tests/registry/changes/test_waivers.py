"""Waivers: what they cover, until when, and which files are none."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from opshift.registry.changes.classify import rule_for
from opshift.registry.changes.findings import Finding, unused, waive
from opshift.registry.changes.waivers import Waiver, load_waivers
from opshift.registry.diff import Change
from opshift.registry.errors import DefinitionError
from opshift.registry.models import OperatorVersion

TODAY = date(2026, 6, 1)
VERSION = OperatorVersion(domain="com.acme", name="Blur", since_version=2)
FINDING = Finding("com.acme.Blur:2", rule_for(Change("version_deleted", "Blur", None, None), VERSION), "", "")


def _waiver(rule: str = "version-deleted", operator: str = "com.acme.Blur:2", until: date = TODAY) -> Waiver:
    return Waiver(rule=rule, operator=operator, reason="nobody ever used it", until=until)


@pytest.mark.parametrize(
    ("waiver", "waived"),
    [
        pytest.param(_waiver(), True, id="of the version, on its last day"),
        pytest.param(_waiver(operator="com.acme.Blur"), True, id="of the operator"),
        pytest.param(_waiver(until=date(2026, 5, 31)), False, id="expired yesterday"),
        pytest.param(_waiver(operator="com.acme.Blur:1"), False, id="of another version"),
        pytest.param(_waiver(operator="com.acme.Sharpen"), False, id="of another operator"),
        pytest.param(_waiver(rule="types-removed"), False, id="of another rule"),
    ],
)
def test_what_is_waived(waiver: Waiver, waived: bool) -> None:
    (finding,) = waive([FINDING], [waiver], TODAY)
    assert finding.is_waived is waived


def test_an_expired_waiver_is_named_and_one_that_lasts_comes_first() -> None:
    old, new = _waiver(until=date(2020, 1, 1)), _waiver(until=date(2027, 1, 1))
    (finding,) = waive([FINDING], [old], TODAY)
    assert (finding.waiver, finding.is_waived) == (old, False)
    (finding,) = waive([FINDING], [old, new], TODAY)
    assert (finding.waiver, finding.is_waived) == (new, True)


def test_waivers_that_cover_nothing_are_told() -> None:
    idle = _waiver(operator="com.acme.Sharpen")
    assert unused([FINDING], [_waiver(), idle]) == [idle]


GOOD = (
    "- {rule: version-deleted, operator: com.acme.Blur:2, reason: nobody ever used it, until: 2026-06-01}\n"
)


def test_a_file_of_waivers(tmp_path: Path) -> None:
    path = tmp_path / "waivers.yaml"
    path.write_text(GOOD, encoding="utf-8")
    assert load_waivers(path) == (_waiver(),)
    path.write_text("", encoding="utf-8")
    assert load_waivers(path) == ()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        pytest.param(("version-deleted", "version-delete"), "unknown rule 'version-delete'", id="no rule"),
        pytest.param(("until: 2026-06-01", "until: soon"), "date", id="no day"),
        pytest.param((", until: 2026-06-01", ""), "required", id="no end"),
        pytest.param(("nobody ever used it", "so"), "at least 10", id="no reason to speak of"),
        pytest.param(("{rule", "{colour: red, rule"), "Extra", id="an unknown key"),
    ],
)
def test_a_file_that_is_none(tmp_path: Path, change: tuple[str, str], message: str) -> None:
    path = tmp_path / "waivers.yaml"
    path.write_text("# accepted\n" + GOOD.replace(*change), encoding="utf-8")
    with pytest.raises(DefinitionError, match=message) as caught:
        load_waivers(path)
    assert caught.value.place.line == 2
