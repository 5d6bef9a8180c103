"""Findings in the format SARIF 2.1.0, which code hosts and editors show.

Source: the OASIS standard "Static Analysis Results Interchange Format (SARIF) Version 2.1.0".
"""

from __future__ import annotations

import errno
import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import TextIO

from opshift.cli.findings.finding import Finding
from opshift.cli.findings.locations import SOURCE_ROOT, artifact_location, working_folder
from opshift.cli.findings.rules import RuleFacts, repository_address, rules_of
from opshift.cli.findings.writer import FindingsWriter, incomplete, problem_text
from opshift.cli.page import displayable, displayable_json
from opshift.model.atomic_files import AtomicFiles
from opshift.model.errors import UsageError

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"

SUFFIXES = (".sarif", ".json")
"""Ends of the names of SARIF files."""

MAX_RESULTS = 25_000
"""Number of results in one run above which GitHub refuses the file."""

MAX_LOCATIONS = 100
"""Number of locations of a result that GitHub stores."""

MAX_MESSAGES = 10
"""Maximum number of findings that the message of a result describes."""

UNKNOWN_RULE = ("The command failed for the file.", "Follow the advice of the message.")
"""Title and advice of rules that no table describes."""


@contextmanager
def open_sarif(path: Path, command: str) -> Iterator[SarifWriter]:
    """Yield a writer to a file, which appears when it is complete, also after an error.

    Raises:
        UsageError: its name is not that of a SARIF file.
        OSError: the file cannot be created.
    """
    if path.suffix not in SUFFIXES:  # it may be a model, which would be replaced
        raise UsageError("is not a .sarif file", place=f"--sarif {path}", remedy="name it findings.sarif")
    interruption: BaseException | None = None
    if not path.parent.is_dir():  # it would be created
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
    with (
        AtomicFiles() as files,
        files.new(Path(os.path.realpath(path))) as (file, _),
        open(file, "w", encoding="utf-8", closefd=False) as stream,
    ):
        writer = SarifWriter(command, stream)
        try:
            yield writer
        except BaseException as error:
            if not writer.is_complete:
                raise
            interruption = error
    if interruption is not None:
        raise interruption


class SarifWriter(FindingsWriter):
    """Writer of SARIF. Findings of one rule about one place of a file become one result.

    Hosts identify a result by its rule and line. A model has no lines, so that they would merge its results.
    """

    def __init__(self, command: str, stream: TextIO | None = None) -> None:
        super().__init__(command, stream)
        self._rules = rules_of(command)
        self._positions = {each: position for position, each in enumerate(self._rules)}
        self._written = 0
        self._omitted = 0
        self.is_complete = False
        """Whether the document was ended."""

    def begin(self) -> None:
        """Write the part before the results, of which each is a line."""
        run = {
            "automationDetails": {"id": f"opshift/{self.command}/"},
            "columnKind": "unicodeCodePoints",
            "originalUriBaseIds": {SOURCE_ROOT: {"uri": working_folder()}},
        }
        head = _dump({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]})
        self.write(f'{head.removesuffix("}]}")},"results":[')

    def add_findings(self, findings: Sequence[Finding]) -> None:
        """Write the results of one file, or count those above the maximum."""
        groups: dict[tuple[str, int], list[Finding]] = {}
        for each in findings:
            groups.setdefault((_identity(each), each.line), []).append(each)
        repeated: Counter[str] = Counter()
        for (identity, _), members in groups.items():
            repeated[identity] += 1
            if self._written == MAX_RESULTS:
                self._omitted += 1
                continue
            result = {**self._result(members), **_fingerprint(identity, repeated[identity])}
            self.write(f"{',' if self._written else ''}\n{_dump(result)}")
            self._written += 1

    def end(self, *, interrupted: bool, reason: str = "") -> None:
        """Write the tool, its rules, and how the command ended; a notification reports missing results."""
        notifications = []
        if interrupted:
            notifications.append(_notification("run.interrupted", "error", incomplete(reason)))
        if self._omitted:
            text = f"{self._omitted:,} results are omitted: code hosts accept {MAX_RESULTS:,} in one run."
            notifications.append(_notification("results.omitted", "warning", text))
        invocation = {
            "executionSuccessful": not interrupted,
            "workingDirectory": {"uri": working_folder()},
            "toolExecutionNotifications": notifications,
        }
        if not interrupted:
            invocation["exitCode"] = 1 if self.failed else 0
        end = {"tool": {"driver": self._driver()}, "invocations": [invocation]}
        self.write(f"\n],{_dump(end).removeprefix('{')}]}}\n")
        self.is_complete = True

    def _driver(self) -> dict[str, object]:
        from opshift.version import __version__

        driver: dict[str, object] = {"name": "opshift", "version": __version__}
        if address := repository_address():
            driver["informationUri"] = address
        return {**driver, "rules": [_descriptor(each) for each in self._rules.values()]}

    def _result(self, members: Sequence[Finding]) -> dict[str, object]:
        first = members[0]
        location = artifact_location(first.file)
        physical = {"artifactLocation": location, "region": {"startLine": first.line or 1}}
        if first.rule not in self._rules:  # an error's class, or a cause that a private adapter names
            self._positions[first.rule] = len(self._rules)
            self._rules[first.rule] = RuleFacts(first.rule, first.level, *UNKNOWN_RULE)
        return {
            "ruleId": first.rule,
            "ruleIndex": self._positions[first.rule],
            "level": first.level,
            "message": {"text": _message(members)},
            "locations": [_location(physical, each) for each in members[:MAX_LOCATIONS]],
            "occurrenceCount": len(members),
        }


def _identity(finding: Finding) -> str:
    """Return what identifies a finding in later runs: its rule and, in a text file, its text."""
    text = (finding.place, finding.message) if finding.line else ()
    uri = artifact_location(finding.file)["uri"]
    return "\0".join((uri, finding.rule, finding.level, *text))


def _fingerprint(identity: str, number: int) -> dict[str, object]:
    digest = sha256(identity.encode(errors="surrogatepass")).hexdigest()
    return {"partialFingerprints": {"opshiftFinding/v1": f"{digest}:{number}"}}


def _descriptor(rule: RuleFacts) -> Mapping[str, object]:
    descriptor: dict[str, object] = {
        "id": rule.id,
        "shortDescription": {"text": rule.title},
        "fullDescription": {"text": rule.title},
        "help": {"text": rule.advice, "markdown": f"**{rule.title}**\n\n{rule.advice}"},
        "defaultConfiguration": {"level": rule.level},
    }
    return {**descriptor, "helpUri": rule.help_uri} if rule.help_uri else descriptor


def _location(physical: Mapping[str, object], finding: Finding) -> dict[str, object]:
    location: dict[str, object] = {"physicalLocation": physical}
    if finding.place:
        location["logicalLocations"] = [{"fullyQualifiedName": displayable(finding.place)}]
    return {**location, "message": {"text": _clean_message(finding.message)}}


def _message(members: Sequence[Finding]) -> str:
    shown = members[:MAX_MESSAGES]
    lines = [problem_text(each) for each in shown]
    if len(members) > len(shown):
        lines.append(f"and {len(members) - len(shown):,} more")
    remedies = dict.fromkeys(each.help for each in shown if each.help)
    return _clean_message("\n".join(chain(lines, (f"help: {each}" for each in remedies))))


def _clean_message(text: str) -> str:
    """Return a text in which readers find neither a placeholder nor a link: both are part of the format."""
    return _clean(text).replace("{", "{{").replace("}", "}}").replace("](", "] (")


def _clean(text: str) -> str:
    """Escape control characters, and characters that UTF-8 cannot encode, on each line."""
    return "\n".join(map(displayable, text.split("\n")))


def _notification(name: str, level: str, text: str) -> dict[str, object]:
    return {"descriptor": {"id": name}, "level": level, "message": {"text": text}}


def _dump(value: object) -> str:
    return displayable_json(json.dumps(value, separators=(",", ":")))
