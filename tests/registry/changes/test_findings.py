"""Scope and expiry of waivers, and refusal of invalid files."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from opshift.registry.changes.classify import classify_single
from opshift.registry.changes.diff import Change
from opshift.registry.changes.history import (
    ChangeFinding,
    Waiver,
    apply_waivers,
    find_unused_waivers,
    load_waivers,
)
from opshift.registry.errors import DefinitionError
from opshift.registry.models import OperatorVersion

TODAY = date(2026, 6, 1)
VERSION = OperatorVersion(domain="com.acme", name="Blur", since_version=2)
FINDING = ChangeFinding(
    "com.acme.Blur:2", classify_single(Change("version_deleted", "Blur", None, None), VERSION), "", ""
)


def _waiver(rule: str = "version-deleted", operator: str = "com.acme.Blur:2", until: date = TODAY) -> Waiver:
    return Waiver(rule=rule, operator=operator, reason="it was never used", until=until)


@pytest.mark.parametrize(
    ("waiver", "waived"),
    [
        pytest.param(_waiver(), True, id="for the version on its last day"),
        pytest.param(_waiver(operator="com.acme.Blur"), True, id="for the operator"),
        pytest.param(_waiver(until=date(2026, 5, 31)), False, id="expired yesterday"),
        pytest.param(_waiver(operator="com.acme.Blur:1"), False, id="for a different version"),
        pytest.param(_waiver(operator="com.acme.Sharpen"), False, id="for a different operator"),
        pytest.param(_waiver(rule="types-removed"), False, id="for a different rule"),
    ],
)
def test_waives_a_matching_finding(waiver: Waiver, waived: bool) -> None:
    (finding,) = apply_waivers([FINDING], [waiver], TODAY)
    assert finding.is_waived is waived


def test_a_valid_waiver_takes_precedence_over_an_expired_one() -> None:
    old, new = _waiver(until=date(2020, 1, 1)), _waiver(until=date(2027, 1, 1))
    (finding,) = apply_waivers([FINDING], [old], TODAY)
    assert (finding.waiver, finding.is_waived) == (old, False)
    (finding,) = apply_waivers([FINDING], [old, new], TODAY)
    assert (finding.waiver, finding.is_waived) == (new, True)


def test_lists_unused_waivers() -> None:
    unmatched = _waiver(operator="com.acme.Sharpen")
    assert find_unused_waivers([FINDING], [_waiver(), unmatched]) == [unmatched]


VALID = "- {rule: version-deleted, operator: com.acme.Blur:2, reason: it was never used, until: 2026-06-01}\n"


def test_loads_waivers(tmp_path: Path) -> None:
    path = tmp_path / "waivers.yaml"
    path.write_text(VALID, encoding="utf-8")
    assert load_waivers(path) == (_waiver(),)
    path.write_text("", encoding="utf-8")
    assert load_waivers(path) == ()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        pytest.param(
            ("version-deleted", "version-delete"), "unknown rule 'version-delete'", id="an unknown rule"
        ),
        pytest.param(("until: 2026-06-01", "until: soon"), "date", id="an invalid date"),
        pytest.param((", until: 2026-06-01", ""), "the key is missing", id="no expiry date"),
        pytest.param(
            ("it was never used", "so"), "expected 10 or more characters", id="a reason that is too short"
        ),
        pytest.param(("{rule", "{colour: red, rule"), "unknown key", id="an unknown key"),
    ],
)
def test_refuses_an_invalid_file(tmp_path: Path, change: tuple[str, str], message: str) -> None:
    path = tmp_path / "waivers.yaml"
    path.write_text("# accepted\n" + VALID.replace(*change), encoding="utf-8")
    with pytest.raises(DefinitionError, match=message) as caught:
        load_waivers(path)
    assert caught.value.place.line == 2
