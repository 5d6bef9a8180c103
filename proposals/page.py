"""Review page of a proposal in Markdown and HTML."""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from string import Template
from typing import Final

from opshift.analysis.verification.numpy_types import Array
from opshift.proposals.check import CheckResult, check_proposal
from opshift.proposals.content.draft import DefinedDraft
from opshift.proposals.content.folder import fingerprint
from opshift.proposals.content.models import Proposal
from opshift.proposals.content.sign_off import REQUIRED_SIGN_OFFS, valid_sign_offs
from opshift.proposals.evidence.coverage import coverage_of
from opshift.proposals.evidence.evidence import Evidence, implemented_version
from opshift.proposals.evidence.outcomes import Outcome
from opshift.registry.changes.classify import classify
from opshift.registry.function_bodies import Body, BodyNode, FromAttribute
from opshift.registry.models import Attribute, OperatorVersion, Parameter
from opshift.registry.registry import Registry
from opshift.registry.steps import Refuse, StepAction

HTML_PAGE: Final = Template("""\
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>$title</title>
<style>
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; font-family: sans-serif; line-height: 1.5; }
table { border-collapse: collapse; }
th, td { border: 1px solid #bbb; padding: .2rem .6rem; text-align: left; }
pre, code { background: #f4f4f4; }
</style>
$body</html>
""")

MAX_SHOWN_VALUES = 40
"""Larger tensors are shown by their element count only, which keeps table rows readable."""


def review_page(path: Path, registry: Registry) -> str:
    """Return the review page in Markdown. The proposal's code is executed.

    Raises:
        InvalidProposal: the folder does not contain a proposal.
    """
    checked = check_proposal(path, registry)
    lines = list(_page_lines(checked))
    return "\n".join(lines).rstrip() + "\n"


def to_html(markdown: str) -> str:
    """Return the page as a complete HTML document. HTML in the Markdown is escaped."""
    from markdown_it import MarkdownIt

    # Proposals are untrusted text: with html disabled, tags in it are escaped.
    body = MarkdownIt("commonmark", {"html": False}).enable("table").render(markdown)
    title = markdown.partition("\n")[0].lstrip("# ")
    return HTML_PAGE.substitute(title=html.escape(title), body=body)


def _page_lines(checked: CheckResult) -> Iterator[str]:
    draft = checked.draft
    if draft is not None:
        yield from _description_lines(draft.proposal)
    if isinstance(draft, DefinedDraft):
        yield from section_lines("Signature", signature_lines(draft.version))
        yield from section_lines("Changes", change_lines(draft))
        if checked.evidence is not None:
            yield from section_lines("Examples", _examples_lines(checked.evidence))
            yield from section_lines("Evidence", _evidence_lines(draft, checked.evidence))
    yield from section_lines("Findings", _findings_lines(checked))
    if draft is not None:
        yield from section_lines("Sign-offs", _sign_off_lines(checked))


def _description_lines(proposal: Proposal) -> Iterator[str]:
    yield f"# {proposal.operator.domain}.{proposal.operator.name}: {proposal.title}"
    yield from ("", f"{proposal.kind.replace('-', ' ').capitalize()} by {proposal.author.name}.")
    texts = {
        "Motivation": proposal.motivation,
        "Formula": proposal.formula and f"```\n{proposal.formula.strip()}\n```",
        "Reason for not being a function": proposal.primitive_reason,
        "Mapping": proposal.mapping,
        "Alternatives": proposal.alternatives,
    }
    for title, text in texts.items():
        yield from section_lines(title, paragraph_lines(text))
    links = {"Model": proposal.model, "Source": proposal.source, "numpy": proposal.numpy}
    yield from section_lines("References", [f"* {name}: {text}" for name, text in links.items() if text])
    rows = [(each.name, each.function, each.differs, each.link) for each in proposal.frameworks]
    yield from section_lines("Frameworks", table_lines(("framework", "function", "differs", "link"), rows))


def _examples_lines(evidence: Evidence) -> Iterator[str]:
    for each in evidence.outcomes:
        if not each.case.retyped:
            yield from _example_lines(each)


def _example_lines(outcome: Outcome) -> Iterator[str]:
    case = outcome.case
    yield from (f"### {case.name}", "")
    yield from paragraph_lines(case.example.about)
    rows = [
        (formal.name, _array_text(array))
        for formal, array in zip(case.version.inputs, case.inputs, strict=False)
    ]
    rows += [(name, cell_text(value)) for name, value in case.attributes.items()]
    rows += [
        (f"**{formal.name}**", _array_text(array))
        for formal, array in zip(case.version.outputs, outcome.outputs or (), strict=False)
    ]
    yield from table_lines(("name", "value"), rows or [("", outcome.failure)])
    yield ""


def _array_text(array: Array | None) -> str:
    if array is None:
        return "omitted"
    values = str(array.tolist()) if array.size <= MAX_SHOWN_VALUES else f"{array.size} values"
    return f"{array.dtype.name}{list(array.shape)} `{values}`"


def _evidence_lines(draft: DefinedDraft, evidence: Evidence) -> Iterator[str]:
    version = implemented_version(draft)
    comparisons = {
        "expected outputs": evidence.expected,
        "function body": evidence.bodies,
        "numpy": evidence.numpy,
        "upgrade": [each.comparison for each in evidence.steps if each.direction == "up"],
        "downgrade": [each.comparison for each in evidence.steps if each.direction == "down"],
    }
    verdicts = ("agrees", "differs", "refused", "not run")
    rows = [
        (name, *(str(sum(each.verdict == verdict for each in results)) for verdict in verdicts))
        for name, results in comparisons.items()
        if results
    ]
    yield from table_lines(("compared with the reference", *verdicts), rows)
    yield ""
    coverage_rows = [
        (
            each.kind,
            cell_text(each.item),
            str(len(each.examples)) if each.examples else "**none**",
            _first_names(each.examples),
        )
        for each in coverage_of(version, evidence)
    ]
    yield from table_lines(("coverage", "item", "cases", "examples"), coverage_rows)


def _first_names(names: tuple[str, ...]) -> str:
    return ", ".join(map(cell_text, names[:3])) + (", ..." if len(names) > len(names[:3]) else "")


def _findings_lines(checked: CheckResult) -> list[str]:
    rows = [
        (
            str(each.level),
            each.rule,
            f"{Path(each.place.file).name}:{each.place.line}",
            cell_text(each.reason),
        )
        for each in checked.findings
    ]
    return table_lines(("level", "rule", "place", "problem"), rows) or ["None."]


def _sign_off_lines(checked: CheckResult) -> Iterator[str]:
    valid = valid_sign_offs(checked.folder)
    yield (
        f"{len(valid)} of {REQUIRED_SIGN_OFFS} sign-offs, "
        f"for content with fingerprint `{fingerprint(checked.folder)}`."
    )
    yield ""
    yield from table_lines(("name", "date"), [(each.name, each.date) for each in valid])


def signature_lines(version: OperatorVersion) -> Iterator[str]:
    """Yield identity, description, inputs, outputs, attributes, types and body of a version."""
    yield from (f"`{version.id}`, {version.status.lower()}, {version.determinism.replace('_', ' ')}", "")
    yield from paragraph_lines(version.description)
    sides = (("input", version.inputs), ("output", version.outputs))
    rows = [_parameter_row(side, formal, version) for side, formals in sides for formal in formals]
    rows += [_attribute_row(name, each) for name, each in version.attributes.items()]
    yield from table_lines(("", "name", "type", "", "default"), rows)
    yield from ("", f"Shapes: `{version.shape or 'none'}`.")
    if version.body is not None:
        yield from ("", "```", *_body_lines(version.body), "```")


def change_lines(draft: DefinedDraft) -> Iterator[str]:
    """Yield the changes since the previous version and the way models are converted."""
    version, step = draft.version, draft.version.step
    if step is not None:
        yield from paragraph_lines(step.change)
        steps = {"up": step.up, "down": step.down}
        yield from (f"* {direction}: {_action_text(action)}" for direction, action in steps.items())
    elif version.before is not None:
        yield f"* in the previous opset: {_action_text(version.before)}"
    if draft.previous is not None:
        yield ""
        changes = classify(draft.previous, version)
        yield from (f"* {cell_text(each.change)} ({each.change_class})" for each in changes)
    retirement = version.removal or version.deprecation
    if retirement is not None:
        yield f"* replaced by {retirement.replaced_by}: {cell_text(retirement.mapping)}"


def _parameter_row(side: str, formal: Parameter, version: OperatorVersion) -> tuple[str, ...]:
    types = ", ".join(each.removeprefix("tensor(").removesuffix(")") for each in version.types_of(formal))
    return (side, f"`{formal.name}`", f"{formal.type}: {types}", formal.option, "")


def _attribute_row(name: str, each: Attribute) -> tuple[str, ...]:
    default = "" if each.default is None else f"`{each.default}`"
    return ("attribute", f"`{name}`", each.type, "required" if each.required else "optional", default)


def _body_lines(body: Body) -> Iterator[str]:
    yield ", ".join(f"{domain} {opset}" for domain, opset in body.opset_imports.items())
    yield from map(_node_text, body.nodes)


def _node_text(node: BodyNode) -> str:
    stated = ", ".join(f"{name}={_value_text(value)}" for name, value in node.attributes.items())
    attributes = f" <{stated}>" if stated else ""
    return f"{', '.join(node.outputs)} = {node.op_type}{attributes}({', '.join(node.inputs)})"


def _value_text(value: object) -> str:
    return f"@{value.attribute}" if isinstance(value, FromAttribute) else str(value)


def _action_text(action: StepAction | str | None) -> str:
    if isinstance(action, Refuse):
        return f"refused: {action.refuse}"
    if isinstance(action, tuple):
        return ", ".join(each.name for each in action)
    return action or "derived from the types"


def section_lines(title: str, lines: Iterable[str]) -> Iterator[str]:
    """Yield a heading and its content; nothing if all lines are empty."""
    listed = list(lines)
    if any(listed):
        yield from ("", f"## {title}", "", *listed)


def paragraph_lines(text: str) -> list[str]:
    """Return a text followed by an empty line; nothing if the text is empty."""
    return [text.strip(), ""] if text.strip() else []


def table_lines(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return a table; no lines if there are no rows."""
    listed = [_row(row) for row in rows]
    return [_row(heads), _row(["---"] * len(heads)), *listed] if listed else []


def cell_text(value: object) -> str:
    """Return a value as text for a table cell: on one line, with `|` escaped."""
    return " ".join(str(value).split()).replace("|", "\\|")


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
