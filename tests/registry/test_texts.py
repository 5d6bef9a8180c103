"""Descriptions of operators and summaries of steps are complete sentences without copies."""

import re
from collections import Counter
from pathlib import Path

import pytest

from opshift.opsets import OPSETS
from opshift.registry.descriptions import Texts, flatten, texts_of
from opshift.registry.models import Operator, OperatorVersion
from opshift.registry.record import Descriptions, from_plain_data
from opshift.registry.registry import default_registry
from opshift.registry.step_rules import is_derivable
from opshift.registry.yaml_files import load_yaml

pytestmark = pytest.mark.every_case

REGISTRY = default_registry()
OPERATORS = {f"{each.domain}.{each.name}": each for each in REGISTRY.operators()}
VERSIONS = {str(version.id): version for each in OPERATORS.values() for version in each.versions}
STEPS = {
    str(new.id): (old, new)
    for each in OPERATORS.values()
    for old, new in zip(each.versions, each.versions[1:], strict=False)
}
FILES = sorted(OPSETS.glob("*/*.yaml"))
END = re.compile(r"[.!?][)\"'`]*(?=\s+[^a-z]|$)")
"""The end of a sentence: a stop that is not followed by a lower-case letter."""
NAME = re.compile(r"`(\w+)(?: ?[=:][^`]*)?`")
"""A name as code, alone or with a value; words in formulas may be other quantities."""
START = re.compile(r"[A-Z`\d]|[a-z]+\d")
"""The start of a sentence: a capital, code, a number, or a name such as float16."""


def _sentences(text: str) -> int:
    return len(END.findall(re.sub(r"`[^`]*`", "Code", text)))


def _is_prose(text: str) -> bool:
    """Return whether a text consists of whole sentences on one line."""
    return text == " ".join(text.split()) and text.endswith((".", ".)")) and bool(START.match(text))


SENTENCE_COUNTS = {
    "no sentence": ("no stop", 0),
    "one sentence": ("It blurs.", 1),
    "two sentences": ("It blurs. `alpha` scales it.", 2),
    "a stop inside code": ("It is `a. B` times 0.5.", 1),
    "a stop before lower case": ("It blurs, e.g. a picture (i.e. pixels).", 1),
    "a stop inside brackets": ("It blurs (a picture.) Then it ends.", 2),
}


@pytest.mark.parametrize(("text", "count"), SENTENCE_COUNTS.values(), ids=SENTENCE_COUNTS)
def test_counts_sentences(text: str, count: int) -> None:
    assert _sentences(text) == count


def test_finds_operators_versions_and_steps() -> None:
    assert len(OPERATORS) >= 238
    assert len(VERSIONS) >= 672
    assert len(STEPS) == len(VERSIONS) - len(OPERATORS)


@pytest.mark.parametrize("operator", OPERATORS.values(), ids=OPERATORS)
def test_describes_an_operator_in_one_to_four_sentences(operator: Operator) -> None:
    for text in {version.description for version in operator.versions}:
        assert 1 <= _sentences(text) <= 4, text
        assert _is_prose(text), text


@pytest.mark.parametrize("operator", OPERATORS.values(), ids=OPERATORS)
def test_describes_parameters_in_sentences(operator: Operator) -> None:
    texts = {text for version in operator.versions for (_, name), text in texts_of(version).items() if name}
    for text in texts - {""}:
        assert 1 <= _sentences(text) <= 4, text
        assert _is_prose(text), text


@pytest.mark.parametrize("operator", OPERATORS.values(), ids=OPERATORS)
def test_texts_name_no_parameter_of_other_versions_only(operator: Operator) -> None:
    """An inherited text must also hold for the versions that inherit it."""
    texts = {version.since_version: texts_of(version) for version in operator.versions}
    names = {since: {name for group, name in texts[since] if group != "types"} for since in texts}
    for since, of_version in texts.items():
        foreign = {name for others in names.values() for name in others} - names[since]
        for key, text in of_version.items():
            assert foreign.isdisjoint(NAME.findall(text)), (since, *key)


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}.{path.stem}")
def test_a_version_repeats_no_text_of_the_previous_one(path: Path) -> None:
    inherited: Texts = {}
    for version in load_yaml(path)["versions"]:
        own = flatten(from_plain_data(Descriptions, version.get("descriptions", {})))
        stored = {key: text for key, text in own.items() if text}
        assert stored.items().isdisjoint(inherited.items())
        inherited = {**inherited, **stored}


def test_every_parameter_has_a_text() -> None:
    assert [name for name, version in VERSIONS.items() if not all(texts_of(version).values())] == []


def test_no_two_operators_share_a_description() -> None:
    counted = Counter(
        text for each in OPERATORS.values() for text in {version.description for version in each.versions}
    )
    assert [text for text, count in counted.items() if count > 1] == []


@pytest.mark.parametrize(("old", "new"), STEPS.values(), ids=STEPS)
def test_a_step_that_cannot_be_derived_has_a_summary(old: OperatorVersion, new: OperatorVersion) -> None:
    change = new.step.change if new.step else ""
    assert change or is_derivable(old, new)
    assert not change or _is_prose(change), change


def test_no_two_steps_of_an_operator_share_a_summary() -> None:
    for operator in OPERATORS.values():
        changes = [
            version.step.change for version in operator.versions if version.step and version.step.change
        ]
        assert len(set(changes)) == len(changes), operator.name


DEPRECATED = {name: version for name, version in VERSIONS.items() if version.deprecation}
REMOVED = {name: version for name, version in VERSIONS.items() if version.removal}


@pytest.mark.parametrize("version", DEPRECATED.values(), ids=DEPRECATED)
def test_the_replacement_of_a_deprecated_operator_is_in_the_newest_opset(version: OperatorVersion) -> None:
    deprecation = version.deprecation
    assert deprecation is not None
    assert deprecation.replacements
    for name in deprecation.replacements:
        domain, _, op_type = name.rpartition(".")
        assert not REGISTRY.get_schema(op_type, domain=domain or version.domain).deprecated
    assert _is_prose(deprecation.mapping)


@pytest.mark.parametrize("version", REMOVED.values(), ids=REMOVED)
def test_the_replacement_of_a_removed_operator_is_in_the_opset_of_the_removal(
    version: OperatorVersion,
) -> None:
    removal = version.removal
    assert removal is not None
    assert _is_prose(removal.mapping)
    for name in removal.replacements:
        replacement = REGISTRY.at(name, removal.removed_in, version.domain)
        assert replacement is not None
        assert not replacement.deprecated
