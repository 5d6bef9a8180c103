"""Start a proposal: a folder whose files hold the questions to answer."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from opshift.converter.errors import UsageError
from opshift.proposals import questions
from opshift.proposals.folder import ADAPTERS, EXAMPLES, FILES, OPERATOR, PROPOSAL, REFERENCE
from opshift.proposals.models import INTRODUCING, Kind
from opshift.proposals.opsets import next_opset
from opshift.proposals.texts import quoted, version_block, without_header, without_key
from opshift.proposals.writing import write_files
from opshift.registry.catalogue import Registry
from opshift.registry.models import Operator, OperatorVersion


class Wanted(NamedTuple):
    """What to propose."""

    kind: Kind
    domain: str
    name: str
    author: str = ""
    email: str = ""


def scaffold(path: Path, wanted: Wanted, registry: Registry) -> tuple[Path, ...]:
    """Write the files of a new proposal.

    Raises:
        UsageError: the folder holds a proposal, or the registry has no operator that could be changed.
    """
    if any((path / name).exists() for name in FILES):
        raise UsageError("holds a proposal already", place=str(path), remedy="choose another folder")
    texts = _texts(wanted, registry)
    write_files({path / name: text for name, text in texts.items()})
    return tuple(path / name for name in texts)


def _texts(wanted: Wanted, registry: Registry) -> dict[str, str]:
    opset = next_opset(registry, wanted.domain)
    texts = {PROPOSAL: _proposal(wanted, registry), EXAMPLES: questions.EXAMPLES_FILE}
    if wanted.kind in INTRODUCING:
        return {**texts, OPERATOR: _introduced(wanted, opset), REFERENCE: _reference(wanted.name, None)}
    operator = _published(wanted, registry)
    newest = operator.versions[-1]
    texts |= {
        OPERATOR: _changed(wanted, operator, registry, opset),
        REFERENCE: _reference(wanted.name, newest),
    }
    if wanted.kind == "removal":
        return texts
    names = {"name": wanted.name, "domain": wanted.domain, "opset": opset, "previous": newest.since_version}
    return {**texts, ADAPTERS: questions.ADAPTERS_FILE.substitute(names)}


def _proposal(wanted: Wanted, registry: Registry) -> str:
    promoted = registry.operator(wanted.name, "ai.onnx.preview") if wanted.kind == "promotion" else None
    return questions.PROPOSAL_FILE.substitute(
        kind=wanted.kind,
        title=quoted(""),
        domain=wanted.domain,
        name=wanted.name,
        author=quoted(wanted.author),
        email=quoted(wanted.email),
        promotes=promoted.versions[-1].id if promoted else "",
    )


def _introduced(wanted: Wanted, opset: int) -> str:
    is_preview = "preview" in wanted.domain.split(".")
    has_body = wanted.kind == "new-function"
    return questions.OPERATOR_FILE.substitute(
        domain=wanted.domain,
        name=wanted.name,
        opset=1 if is_preview else opset,
        status="EXPERIMENTAL" if is_preview else "STABLE",
        before=questions.BEFORE_BODY if has_body else questions.BEFORE_PRIMITIVE,
        body=questions.BODY if has_body else "",
    )


def _published(wanted: Wanted, registry: Registry) -> Operator:
    operator = registry.operator(wanted.name, wanted.domain)
    if operator is None:
        raise UsageError(
            f"{wanted.domain} has no {wanted.name}", remedy="check the name, or propose a new operator"
        )
    return operator


def _changed(wanted: Wanted, operator: Operator, registry: Registry, opset: int) -> str:
    """The published file with a copy of its last version behind it, or with the removal in that."""
    path = registry.file_of(wanted.name, wanted.domain)
    text = without_header(path.read_text("utf-8")).rstrip("\n") + "\n"
    if wanted.kind == "removal":
        return text + questions.REMOVAL.substitute(opset=opset)
    block = without_key(without_key(version_block(path, len(operator.versions) - 1), "step"), "before")
    block = re.sub(
        r"^- since_version: \d+\n(  status: \w+\n)?", rf"- since_version: {opset}\n\1" + "{step}", block
    )
    added = questions.DEPRECATION if wanted.kind == "deprecation" else ""
    return text + block.replace("{step}", questions.STEP) + added


def _reference(name: str, version: OperatorVersion | None) -> str:
    inputs = ", ".join(each.name for each in version.inputs) if version else "X"
    attributes = "".join(f", {each}" for each in version.attributes) if version else ""
    keywords = f", *{attributes}" if attributes else ""
    return questions.REFERENCE_FILE.substitute(name=name, inputs=inputs, attributes=keywords)
