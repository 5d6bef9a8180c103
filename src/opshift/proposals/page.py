"""Review page of a proposal in Markdown and HTML."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from opshift.analysis.pages.diagram import body_boxes, mermaid, svg
from opshift.analysis.pages.document import (
    Document,
    anchor,
    code_block,
    code_span,
    escape_line,
    escape_text,
    table,
    web_link,
)
from opshift.analysis.verification.numpy_types import Array
from opshift.proposals.check import CheckResult, check_proposal
from opshift.proposals.content.draft import DefinedDraft
from opshift.proposals.content.folder import fingerprint
from opshift.proposals.content.models import Proposal
from opshift.proposals.content.sign_off import sign_off_count
from opshift.proposals.evidence.cases import parameter_at
from opshift.proposals.evidence.coverage import coverage_of
from opshift.proposals.evidence.evidence import Evaluated, Evidence, implemented_version
from opshift.proposals.evidence.outcomes import Outcome
from opshift.registry.changes.classify import classify
from opshift.registry.models import Attribute, OperatorVersion, Parameter
from opshift.registry.registry import Registry
from opshift.registry.steps import Refuse, StepAction

MAX_SHOWN_VALUES = 40
"""Maximum number of shown elements; of larger tensors, the page shows only the number of elements."""


def review_page(path: Path, registry: Registry) -> Document:
    """Return the review page. The proposal's code is executed.

    Raises:
        InvalidProposal: the folder does not contain a proposal.
    """
    checked = check_proposal(path, registry)
    parts = [_heading_text(checked.draft.proposal)] if checked.draft else []
    sections = [(title, text.strip()) for title, text in _page_sections(checked) if text.strip()]
    parts += ["\n".join(f"* [{title}](#{anchor(title)})" for title, _ in sections)]
    for title, text in sections:
        parts += [f"## {title}", text]
    boxes = body_boxes(checked.draft.version) if isinstance(checked.draft, DefinedDraft) else []
    return Document("\n\n".join(parts) + "\n", (svg(boxes, "Function body"),))


def operator_page(draft: Evaluated) -> str:
    """Return the page of an accepted operator version in Markdown."""
    parts = [f"# {escape_line(draft.version.id)}"]
    for title, text in (
        ("Signature", _signature_section(draft.version)),
        ("Formula", draft.proposal.formula and code_block(draft.proposal.formula)),
        ("Changes", _changes_section(draft)),
        ("Examples", _examples_section(draft)),
    ):
        if text:
            parts += [f"## {title}", text]
    return "\n\n".join(parts) + "\n"


def _heading_text(proposal: Proposal) -> str:
    kind = proposal.kind.replace("-", " ").capitalize()
    title = escape_line(f"{proposal.operator.domain}.{proposal.operator.name}: {proposal.title}")
    return f"# {title}\n\n{kind} by {escape_line(proposal.author.name)}."


def _page_sections(checked: CheckResult) -> Iterator[tuple[str, str]]:
    """Yield title and text of each section; the text may be empty."""
    draft = checked.draft
    if draft is not None:
        yield from _answer_sections(draft.proposal)
    if isinstance(draft, DefinedDraft):
        yield "Signature", _signature_section(draft.version)
        yield "Changes", _changes_section(draft)
    if isinstance(draft, Evaluated):
        yield "Examples", _examples_section(draft)
        yield "Evidence", f"{_comparisons_section(draft.evidence)}\n\n{_coverage_section(draft)}"
    findings = [
        (
            str(each.level),
            each.rule,
            f"{Path(each.place.file).name}:{each.place.line}",
            escape_line(each.reason),
        )
        for each in checked.findings
    ]
    yield "Findings", table(("level", "rule", "place", "problem"), findings) or "None."
    if draft is not None:
        valid, digest = draft.sign_offs, fingerprint(checked.folder)
        count = f"{sign_off_count(len(valid))} sign-offs, for content with fingerprint `{digest}`."
        signers = [
            (escape_line(each.name), escape_line(each.date), "yes" if each.signature else "no")
            for each in valid
        ]
        yield "Sign-offs", f"{count}\n\n{table(('name', 'date', 'signed'), signers)}"


def _answer_sections(proposal: Proposal) -> Iterator[tuple[str, str]]:
    yield "Motivation", escape_text(proposal.motivation)
    yield "Formula", proposal.formula and code_block(proposal.formula)
    yield "Reason for not being a function", escape_text(proposal.primitive_reason)
    yield "Mapping", escape_text(proposal.mapping)
    yield "Alternatives", escape_text(proposal.alternatives)
    links = {"Model": proposal.model, "Source": proposal.source, "numpy": proposal.numpy}
    yield "References", "\n".join(f"* {name}: {web_link(link)}" for name, link in links.items() if link)
    rows = [
        (*map(escape_line, (each.name, each.function, each.differs)), web_link(each.link))
        for each in proposal.frameworks
    ]
    yield "Frameworks", table(("framework", "function", "differs", "link"), rows)


def _signature_section(version: OperatorVersion) -> str:
    rows: list[tuple[str, ...]] = []
    for side, formals in (("input", version.inputs), ("output", version.outputs)):
        for each in formals:
            types = [kind.removeprefix("tensor(").removesuffix(")") for kind in version.types_of(each)]
            described = escape_line(f"{each.type}: {', '.join(types)}")
            rows.append((side, code_span(each.name), described, each.option, "", "", each.description))
    for name, attribute in version.attributes.items():
        default = "" if attribute.default is None else code_span(attribute.default)
        option = "required" if attribute.required else "optional"
        facts = (attribute.type, option, default, _range_text(attribute), attribute.description)
        rows.append(("attribute", code_span(name), *facts))
    rows += [
        ("type", code_span(name), "", "", "", "", text) for name, text in version.type_descriptions.items()
    ]
    rows = [(*row[:-1], escape_line(row[-1])) for row in rows]
    parts = [
        f"{code_span(version.id)}, {version.status.lower()}, {version.determinism.replace('_', ' ')}",
        escape_text(version.description),
        table(("kind", "name", "type", "presence", "default", "range", "description"), rows),
        f"Shapes: {code_span(version.shape or 'none')}.",
        code_block(str(version.body)) if version.body else "",
        mermaid(body_boxes(version)),
    ]
    return "\n\n".join(filter(None, parts))


def _range_text(attribute: Attribute) -> str:
    """Return the allowed values of an attribute as text, such as `0 to 1`; empty if any is allowed."""
    if attribute.values is not None:
        return ", ".join(map(code_span, attribute.values))
    low, high = attribute.minimum, attribute.maximum
    if low is None or high is None:
        return f"at least {low}" if low is not None else f"at most {high}" if high is not None else ""
    return f"{low} to {high}"


def _changes_section(draft: DefinedDraft) -> str:
    """Return the changes since the previous version, and the conversions in both directions."""
    version, step, retirement = draft.version, draft.version.step, draft.retirement
    conversions: list[str] = []
    if step is not None:
        conversions = [f"* up: {_action_text(step.up)}", f"* down: {_action_text(step.down)}"]
    elif version.before is not None:
        conversions = [f"* down, to the opset before the operator: {_action_text(version.before)}"]
    changes = classify(draft.previous, version) if draft.previous else ()
    if retirement is not None:
        names = escape_line(", ".join(retirement.replacements))
        conversions.append(f"* replaced by {names}: {escape_line(retirement.mapping)}")
    rows = [(each.change_class, escape_line(each.change), escape_line(each.purpose)) for each in changes]
    differences = table(("class", "change", "effect"), rows)
    parts = (escape_text(step.change) if step else "", "\n".join(conversions), differences)
    return "\n\n".join(filter(None, parts))


def _action_text(action: StepAction | str | None) -> str:
    if isinstance(action, Refuse):
        return f"refused: {escape_line(action.refuse)}"
    if isinstance(action, tuple):
        return ", ".join(each.name for each in action)
    return action or "derived from the types"


def _examples_section(draft: Evaluated) -> str:
    return "\n\n".join(_example_section(each) for each in draft.evidence.outcomes if not each.case.retyped)


def _example_section(outcome: Outcome) -> str:
    case = outcome.case
    inputs, outputs = case.version.inputs, case.version.outputs
    rows = [(_parameter_name(inputs, each), _array_text(array)) for each, array in enumerate(case.inputs)]
    rows += [(escape_line(name), escape_line(value)) for name, value in case.attributes.items()]
    rows += [
        (f"**{_parameter_name(outputs, each)}**", _array_text(array))
        for each, array in enumerate(outcome.outputs or ())
    ]
    values = table(("name", "value"), rows or [("", escape_line(outcome.failure))])
    return "\n\n".join(
        filter(None, (f"### {escape_line(case.name)}", escape_text(case.example.about), values))
    )


def _parameter_name(parameters: tuple[Parameter, ...], position: int) -> str:
    parameter = parameter_at(parameters, position)
    return escape_line(parameter.name) if parameter else str(position)


def _array_text(array: Array | None) -> str:
    if array is None:
        return "omitted"
    values = str(_rounded(array.tolist())) if array.size <= MAX_SHOWN_VALUES else f"{array.size} values"
    return f"{array.dtype.name}{list(array.shape)} {code_span(values)}"


def _rounded(value: object) -> object:
    """Round the numbers in nested lists to 6 significant digits, the precision of float32."""
    if isinstance(value, list):
        return [_rounded(each) for each in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value


def _comparisons_section(evidence: Evidence) -> str:
    comparisons = {
        "expected outputs": evidence.expected,
        "function body": evidence.bodies,
        "numpy": evidence.numpy,
        "upgrade": evidence.steps["up"],
        "downgrade": evidence.steps["down"],
    }
    verdicts = ("agrees", "differs", "refused", "not run")
    rows: list[list[str]] = []
    for name, results in comparisons.items():
        counts = Counter[str](each.verdict for each in results)
        if results:
            rows.append([name, *(str(counts[verdict]) for verdict in verdicts)])
    return table(("compared with the reference", *verdicts), rows)


def _coverage_section(draft: Evaluated) -> str:
    rows: list[tuple[str, ...]] = []
    for kind, item, examples in coverage_of(implemented_version(draft), draft.evidence):
        names = ", ".join(map(escape_line, examples[:3])) + (", ..." if examples[3:] else "")
        rows.append((kind, escape_line(item), str(len(examples) or "**none**"), names))
    return table(("coverage", "item", "cases", "examples"), rows)
