"""Create the folder of a new proposal, with questions in its files."""

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
    """Kind, operator and author of a new proposal."""

    kind: Kind
    domain: str
    name: str
    author: str = ""
    email: str = ""


def scaffold(path: Path, request: Wanted, registry: Registry) -> tuple[Path, ...]:
    """Write the files of a new proposal.

    Returns:
        The paths of the written files.

    Raises:
        UsageError: the folder already contains a proposal, or the operator to change does not exist.
    """
    if any((path / name).exists() for name in FILES):
        raise UsageError(
            "the folder already contains a proposal", place=str(path), remedy="choose another folder"
        )
    texts = _file_contents(request, registry)
    write_files({path / name: text for name, text in texts.items()})
    return tuple(path / name for name in texts)


def _file_contents(request: Wanted, registry: Registry) -> dict[str, str]:
    opset = next_opset(registry, request.domain)
    texts = {PROPOSAL: _proposal_text(request, registry), EXAMPLES: questions.EXAMPLES_FILE}
    if request.kind in INTRODUCING:
        return {
            **texts,
            OPERATOR: _new_definition(request, opset),
            REFERENCE: _reference_text(request.name, None),
        }
    operator = _published_operator(request, registry)
    newest = operator.versions[-1]
    texts |= {
        OPERATOR: _changed_definition(request, operator, registry, opset),
        REFERENCE: _reference_text(request.name, newest),
    }
    if request.kind == "removal":
        return texts
    names = {"name": request.name, "domain": request.domain, "opset": opset, "previous": newest.since_version}
    return {**texts, ADAPTERS: questions.ADAPTERS_FILE.substitute(names)}


def _proposal_text(request: Wanted, registry: Registry) -> str:
    promoted = registry.operator(request.name, "ai.onnx.preview") if request.kind == "promotion" else None
    return questions.PROPOSAL_FILE.substitute(
        kind=request.kind,
        title=quoted(""),
        domain=request.domain,
        name=request.name,
        author=quoted(request.author),
        email=quoted(request.email),
        promotes=promoted.versions[-1].id if promoted else "",
    )


def _new_definition(request: Wanted, opset: int) -> str:
    is_preview = "preview" in request.domain.split(".")
    has_body = request.kind == "new-function"
    return questions.OPERATOR_FILE.substitute(
        domain=request.domain,
        name=request.name,
        opset=1 if is_preview else opset,
        status="EXPERIMENTAL" if is_preview else "STABLE",
        before=questions.BEFORE_BODY if has_body else questions.BEFORE_PRIMITIVE,
        body=questions.BODY if has_body else "",
    )


def _published_operator(request: Wanted, registry: Registry) -> Operator:
    operator = registry.operator(request.name, request.domain)
    if operator is None:
        raise UsageError(
            f"domain {request.domain!r} has no operator {request.name!r}",
            remedy="check the name, or propose a new operator",
        )
    return operator


def _changed_definition(request: Wanted, operator: Operator, registry: Registry, opset: int) -> str:
    """Return the published definition with a new version, a copy of the last one, or with a removal."""
    path = registry.file_of(request.name, request.domain)
    text = without_header(path.read_text("utf-8")).rstrip("\n") + "\n"
    if request.kind == "removal":
        return text + questions.REMOVAL.substitute(opset=opset)
    # The copied version declares its own step, so those of its source are removed.
    block = without_key(without_key(version_block(path, len(operator.versions) - 1), "step"), "before")
    block = re.sub(
        r"^- since_version: \d+\n(  status: \w+\n)?", rf"- since_version: {opset}\n\1" + "{step}", block
    )
    deprecation = questions.DEPRECATION if request.kind == "deprecation" else ""
    return text + block.replace("{step}", questions.STEP) + deprecation


def _reference_text(name: str, version: OperatorVersion | None) -> str:
    inputs = ", ".join(each.name for each in version.inputs) if version else "X"
    attributes = "".join(f", {each}" for each in version.attributes) if version else ""
    keywords = f", *{attributes}" if attributes else ""
    return questions.REFERENCE_FILE.substitute(name=name, inputs=inputs, attributes=keywords)
