"""Findings in the formats of code hosts and editors: GitHub Actions, GitLab Code Quality and SARIF 2.1.0.

Sources: the page "Workflow commands for GitHub Actions" of GitHub's documentation; the page "Code Quality"
of GitLab's documentation, "Code Quality report format"; the OASIS standard "Static Analysis Results
Interchange Format (SARIF) Version 2.1.0".
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import chain
from pathlib import Path, PurePath
from typing import TextIO
from urllib.parse import quote

from opshift.cli.findings.finding import (
    FileFinding,
    FindingsWriter,
    RuleFacts,
    Severity,
    incomplete,
    problem_text,
    repository_address,
    rules_of,
)
from opshift.cli.options import Format
from opshift.cli.page import displayable, displayable_json
from opshift.model.atomic_files import AtomicFiles, raising_cannot_write
from opshift.model.errors import UsageError
from opshift.model.locations import is_url
from opshift.model.message_text import count_text
from opshift.version import package_version

SOURCE_ROOT = "%SRCROOT%"
"""Name that SARIF readers use for the root of the sources."""

URL_CHARACTERS = "/:?=&@%"
"""Characters that have a meaning in a URL."""


def absolute_path(file: str) -> Path:
    """Return the absolute path of a file without `..`, for comparisons with the working folder."""
    return Path(os.path.abspath(file))


def relative_name(path: PurePath, root: PurePath) -> str | None:
    """Return the path of a file relative to a folder, with slashes; `None` if the file is outside."""
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else None


def working_folder() -> str:
    """Return the URI of the working folder, with the final slash that a base of relative URIs needs."""
    return (Path.cwd() / "-").as_uri().removesuffix("-")


def artifact_location(file: str) -> dict[str, str]:
    """Return the location of a file for SARIF: relative to the working folder if the file is in it."""
    if is_url(file):
        return {"uri": quote(file, safe=URL_CHARACTERS)}
    return path_location(absolute_path(file), Path.cwd())


def path_location(path: PurePath, root: PurePath) -> dict[str, str]:
    """Return the location of an absolute path for SARIF: relative to `root` if the path is below it."""
    name = relative_name(path, root)
    if name is None:
        return {"uri": path.as_uri()}
    return {"uri": quote(os.fsencode(name)), "uriBaseId": SOURCE_ROOT}


COMMANDS: dict[Severity, str] = {"error": "error", "warning": "warning", "note": "notice"}
"""Workflow command of GitHub Actions for each severity."""

MAX_ANNOTATIONS = 10
"""Number of annotations of each severity that GitHub shows for one step."""

MAX_FILES = 3
"""Maximum number of files that an annotation names if it represents all findings of a rule."""


@dataclass
class RuleFindings:
    """Findings of one severity and rule: count, number of files, first findings, and names of first files."""

    count: int = 0
    files: int = 0
    first: list[FileFinding] = field(default_factory=list)
    names: list[str] = field(default_factory=list)


class GithubWriter(FindingsWriter):
    """Writer of GitHub annotations: one per finding or, if GitHub would not show all, one per cause.

    Annotations are written at the end, when the rules with the most findings are known.
    """

    def __init__(self, command: str, stream: TextIO | None = None) -> None:
        super().__init__(command, stream)
        self._causes: dict[tuple[Severity, str, str], RuleFindings] = {}

    def begin(self) -> None:
        """Write nothing: annotations are separate lines, without a common start."""

    def add_findings(self, findings: Sequence[FileFinding]) -> None:
        """Count the findings of one file, and keep the first ones of each rule."""
        # unreadable files of different kinds, such as Git LFS pointers, differ in their remedies only
        keys: list[tuple[Severity, str, str]] = [
            (each.level, each.rule, "" if each.place else each.help) for each in findings
        ]
        for key, each in zip(keys, findings, strict=True):
            cause = self._causes.setdefault(key, RuleFindings())
            cause.count += 1
            if len(cause.first) < MAX_ANNOTATIONS:
                cause.first.append(each)
        for key in dict.fromkeys(keys):
            cause = self._causes[key]
            cause.files += 1
            if len(cause.names) < MAX_FILES:
                cause.names.append(findings[0].file)

    def end(self, *, interrupted: bool, reason: str = "") -> None:
        """Write the annotations; if GITHUB_STEP_SUMMARY names a file, append the summary of the job to it."""
        if interrupted:
            title = {"title": f"opshift {self.command}"}
            self.write(annotation("error", title, displayable(incomplete(reason))) + "\n")
        for severity, command in COMMANDS.items():
            causes = self._sorted(severity)
            if sum(each.count for each in causes) <= MAX_ANNOTATIONS:
                for finding in (each for cause in causes for each in cause.first):
                    self.write(_finding_annotation(command, finding) + "\n")
            else:
                for cause in causes:
                    self.write(_cause_annotation(command, cause) + "\n")
        summary = os.environ.get("GITHUB_STEP_SUMMARY")
        if summary:
            with open(summary, "a", encoding="utf-8") as file:
                file.write(self._summary(interrupted))

    def _sorted(self, severity: Severity) -> list[RuleFindings]:
        """Return the findings of a severity by rule; rules with the most findings are first."""
        causes = (cause for (level, *_), cause in self._causes.items() if level == severity)
        return sorted(causes, key=lambda each: -each.count)

    def _summary(self, interrupted: bool) -> str:
        from opshift.analysis.pages.document import escape_line, table

        result = f"{count_text(self.failed, 'file')} with errors{', interrupted' if interrupted else ''}"
        rows = [
            (
                severity,
                escape_line(first.rule),
                f"{cause.count:,}",
                f"{cause.files:,}",
                escape_line(_problem_text(first)),
            )
            for severity in COMMANDS
            for cause in self._sorted(severity)
            for first in cause.first[:1]
        ]
        causes = table(("level", "cause", "findings", "files", "first"), rows)
        return f"### opshift {self.command}\n\n{result}\n\n{causes}\n\n"


def _finding_annotation(command: str, finding: FileFinding) -> str:
    return annotation(command, _properties(finding, finding.rule), _finding_text(finding))


def _cause_annotation(command: str, cause: RuleFindings) -> str:
    first = cause.first[0]
    if cause.count == 1:
        return _finding_annotation(command, first)
    counts = f"{count_text(cause.count, 'finding')} in {count_text(cause.files, 'file')}"
    others = ", ".join(cause.names) + (", ..." if cause.files > len(cause.names) else "")
    properties = _properties(first, f"{first.rule}: {counts}")
    return annotation(command, properties, f"{_finding_text(first)}\nfiles: {displayable(others)}")


def _properties(finding: FileFinding, title: str) -> dict[str, str]:
    """Return the properties of an annotation: its title and, for a local file, the path and line."""
    title = displayable(title)
    if is_url(finding.file):
        return {"title": title}
    path = absolute_path(finding.file)
    name = relative_name(path, Path.cwd()) or str(path)
    # `annotation` encodes line breaks; GitHub has no escapes for other control characters
    name = "".join(each if each in "\r\n" else displayable(each) for each in name)
    return {"file": name, "line": str(finding.line or 1), "title": title}


def _finding_text(finding: FileFinding) -> str:
    problem = displayable(_problem_text(finding) if is_url(finding.file) else problem_text(finding))
    return f"{problem}\nhelp: {displayable(finding.help)}" if finding.help else problem


def _problem_text(finding: FileFinding) -> str:
    return f"{finding.file}: {problem_text(finding)}"


def annotation(command: str, properties: dict[str, str], text: str) -> str:
    """Return a workflow command of GitHub Actions, which shows a text at a line of a file."""
    pairs = ",".join(f"{key}={escape_property(value)}" for key, value in properties.items())
    return f"::{command} {pairs}::{escape_data(text)}"


def escape_data(text: str) -> str:
    """Escape a text, so that it cannot end the workflow command."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def escape_property(text: str) -> str:
    """Escape the value of a property, so that it cannot start another property."""
    return escape_data(text).replace(":", "%3A").replace(",", "%2C")


SEVERITIES: dict[Severity, str] = {"error": "major", "warning": "minor", "note": "info"}


class GitlabWriter(FindingsWriter):
    """Writer of a Code Quality report of GitLab: a JSON list with one object for each finding."""

    def __init__(self, command: str, stream: TextIO | None = None) -> None:
        super().__init__(command, stream)
        self._separator = ""

    def begin(self) -> None:
        """Begin the list."""
        self.write("[")

    def add_findings(self, findings: Sequence[FileFinding]) -> None:
        """Write the findings of one file."""
        for each in findings:
            self.write(f"{self._separator}\n{displayable_json(_gitlab_issue(each))}")
            self._separator = ","

    def end(self, *, interrupted: bool, reason: str = "") -> None:
        """End the list."""
        self.write("\n]\n")


def _gitlab_issue(finding: FileFinding) -> dict[str, object]:
    path = finding.file
    if not is_url(path):
        path = relative_name(absolute_path(path), Path.cwd()) or path
    text = problem_text(finding)
    # with the text, because GitLab shows only one of several issues with equal fingerprints
    identity = "\0".join((finding.rule, path, text, str(finding.line))).encode(errors="surrogatepass")
    return {
        "description": displayable(f"{text} ({finding.help})" if finding.help else text),
        "check_name": finding.rule,
        "fingerprint": sha256(identity).hexdigest(),
        "severity": SEVERITIES[finding.level],
        "location": {"path": path, "lines": {"begin": finding.line or 1}},
    }


SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"

SUFFIXES = (".sarif", ".json")

MAX_RESULTS = 25_000
"""Maximum number of results in one run that GitHub accepts."""

MAX_LOCATIONS = 100
"""Maximum number of locations that GitHub stores for a result."""

MAX_MESSAGES = 10
"""Maximum number of findings that the message of a result describes."""

UNKNOWN_RULE = ("The command failed for the file.", "Follow the advice of the message.")
"""Title and advice for rule ids that no rule table contains, such as the class of an error."""


@contextmanager
def open_sarif(path: Path, command: str) -> Iterator[SarifWriter]:
    """Yield a SARIF writer; the file appears when the document is complete, also after an error.

    Raises:
        UsageError: the name does not end in .sarif or .json.
        CannotWrite: the file cannot be created or written.
    """
    # without this check, a mistyped command could replace the model by the report
    if path.suffix not in SUFFIXES:
        raise UsageError(
            "does not end in .sarif or .json", place=f"--sarif {path}", remedy="name it findings.sarif"
        )
    interruption: BaseException | None = None
    with AtomicFiles() as files, ExitStack() as stack:
        # The block excludes `yield`, because errors in the caller concern other files.
        with raising_cannot_write(path):
            file, _ = stack.enter_context(files.new(Path(os.path.realpath(path))))
            stream = stack.enter_context(open(file, "w", encoding="utf-8", closefd=False))
        writer = SarifWriter(command, stream, path)
        try:
            yield writer
        except BaseException as error:
            if not writer.is_complete:
                raise
            interruption = error
    if interruption is not None:
        raise interruption


class SarifWriter(FindingsWriter):
    """Writer of SARIF. All findings of one rule and severity about a model become one result.

    Code hosts merge results with the same rule and line, and a model has no lines.
    Findings about a text file share a result only if their line, place and message are equal.
    """

    def __init__(self, command: str, stream: TextIO | None = None, path: Path | None = None) -> None:
        """Prepare the document; `path` names the stream in errors."""
        super().__init__(command, stream)
        self._path = path
        self._rules = rules_of(command)
        self._positions = {each: position for position, each in enumerate(self._rules)}
        self._written = 0
        self._omitted = 0
        self.is_complete = False
        """Whether the document was ended."""

    def write(self, text: str) -> None:
        """Write a text immediately; errors name the file."""
        with raising_cannot_write(self._path) if self._path else nullcontext():
            super().write(text)

    def begin(self) -> None:
        """Write the part before the results; each result is one line."""
        run = {
            "automationDetails": {"id": f"opshift/{self.command}/"},
            "columnKind": "unicodeCodePoints",
            "originalUriBaseIds": {SOURCE_ROOT: {"uri": working_folder()}},
        }
        head = _compact_json({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]})
        self.write(f'{head.removesuffix("}]}")},"results":[')

    def add_findings(self, findings: Sequence[FileFinding]) -> None:
        """Write the results of one file; if MAX_RESULTS are written, only count the others."""
        groups: dict[tuple[str, int], list[FileFinding]] = {}
        for each in findings:
            groups.setdefault((_finding_identity(each), each.line), []).append(each)
        repeated: Counter[str] = Counter()
        for (identity, _), members in groups.items():
            repeated[identity] += 1
            if self._written == MAX_RESULTS:
                self._omitted += 1
                continue
            result = {**self._sarif_result(members), **_sarif_fingerprint(identity, repeated[identity])}
            self.write(f"{',' if self._written else ''}\n{_compact_json(result)}")
            self._written += 1

    def end(self, *, interrupted: bool, reason: str = "") -> None:
        """Write the tool, its rules, and how the command ended; a notification reports missing results."""
        notifications = []
        if interrupted:
            notifications.append(_sarif_notification("run.interrupted", "error", incomplete(reason)))
        if self._omitted:
            text = f"{self._omitted:,} results are omitted: code hosts accept {MAX_RESULTS:,} in one run."
            notifications.append(_sarif_notification("results.omitted", "warning", text))
        invocation = {
            "executionSuccessful": not interrupted,
            "workingDirectory": {"uri": working_folder()},
            "toolExecutionNotifications": notifications,
        }
        if not interrupted:
            invocation["exitCode"] = 1 if self.failed else 0
        end = {"tool": {"driver": self._sarif_driver()}, "invocations": [invocation]}
        self.write(f"\n],{_compact_json(end).removeprefix('{')}]}}\n")
        self.is_complete = True

    def _sarif_driver(self) -> dict[str, object]:
        driver: dict[str, object] = {"name": "opshift", "version": package_version()}
        if address := repository_address():
            driver["informationUri"] = address
        return {**driver, "rules": [_rule_descriptor(each) for each in self._rules.values()]}

    def _sarif_result(self, members: Sequence[FileFinding]) -> dict[str, object]:
        first = members[0]
        location = artifact_location(first.file)
        physical = {"artifactLocation": location, "region": {"startLine": first.line or 1}}
        if first.rule not in self._rules:  # the class of an error, or a cause that a private adapter names
            self._positions[first.rule] = len(self._rules)
            self._rules[first.rule] = RuleFacts(first.rule, first.level, *UNKNOWN_RULE)
        return {
            "ruleId": first.rule,
            "ruleIndex": self._positions[first.rule],
            "level": first.level,
            "message": {"text": _result_message(members)},
            "locations": [_sarif_location(physical, each) for each in members[:MAX_LOCATIONS]],
            "occurrenceCount": len(members),
        }


def _finding_identity(finding: FileFinding) -> str:
    """Return a text that identifies a finding across runs, with place and message if it has a line."""
    text = (finding.place, finding.message) if finding.line else ()
    uri = artifact_location(finding.file)["uri"]
    return "\0".join((uri, finding.rule, finding.level, *text))


def _sarif_fingerprint(identity: str, number: int) -> dict[str, object]:
    digest = sha256(identity.encode(errors="surrogatepass")).hexdigest()
    return {"partialFingerprints": {"opshiftFinding/v1": f"{digest}:{number}"}}


def _rule_descriptor(rule: RuleFacts) -> Mapping[str, object]:
    descriptor: dict[str, object] = {
        "id": rule.id,
        "shortDescription": {"text": rule.title},
        "fullDescription": {"text": rule.title},
        "help": {"text": rule.advice, "markdown": f"**{rule.title}**\n\n{rule.advice}"},
        "defaultConfiguration": {"level": rule.level},
    }
    return {**descriptor, "helpUri": rule.help_uri} if rule.help_uri else descriptor


def _sarif_location(physical: Mapping[str, object], finding: FileFinding) -> dict[str, object]:
    location: dict[str, object] = {"physicalLocation": physical}
    if finding.place:
        location["logicalLocations"] = [{"fullyQualifiedName": displayable(finding.place)}]
    return {**location, "message": {"text": _clean_message(finding.message)}}


def _result_message(members: Sequence[FileFinding]) -> str:
    shown = members[:MAX_MESSAGES]
    lines = [problem_text(each) for each in shown]
    if len(members) > len(shown):
        lines.append(f"and {len(members) - len(shown):,} more")
    remedies = dict.fromkeys(each.help for each in shown if each.help)
    return _clean_message("\n".join(chain(lines, (f"help: {each}" for each in remedies))))


def _clean_message(text: str) -> str:
    """Escape a message: SARIF readers interpret placeholders `{0}` and links `[text](target)`."""
    return _clean_text(text).replace("{", "{{").replace("}", "}}").replace("](", "] (")


def _clean_text(text: str) -> str:
    """Escape control characters, and characters that UTF-8 cannot encode, on each line."""
    return "\n".join(map(displayable, text.split("\n")))


def _sarif_notification(name: str, level: str, text: str) -> dict[str, object]:
    return {"descriptor": {"id": name}, "level": level, "message": {"text": text}}


def _compact_json(value: object) -> str:
    return displayable_json(value, separators=(",", ":"))


WRITERS: Mapping[Format, type[FindingsWriter]] = {
    Format.SARIF: SarifWriter,
    Format.GITHUB: GithubWriter,
    Format.GITLAB: GitlabWriter,
}


def findings_writer(form: Format, command: str) -> FindingsWriter | None:
    """Return the writer of the findings of a command, or `None` for text and JSON."""
    return WRITERS[form](command) if form in WRITERS else None
