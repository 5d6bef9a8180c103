"""Create the folder of a new proposal, with questions to the author as comments in its files."""

import textwrap
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from string import Template
from typing import Any, NamedTuple

from opshift.model.atomic_files import write_files
from opshift.model.errors import UsageError
from opshift.model.message_text import did_you_mean
from opshift.model.operator_ids import require_path_names
from opshift.opsets import OPSETS
from opshift.proposals.content.folder import (
    ADAPTERS,
    EXAMPLES,
    HEADER,
    OPERATOR,
    PROPOSAL,
    PROPOSAL_FILES,
    REFERENCE,
    TEMPLATES,
    quote_yaml,
    temporary_file,
    version_block,
    without_key,
)
from opshift.proposals.content.models import INTRODUCING_KINDS, Kind
from opshift.proposals.content.staged_registry import (
    UNRELEASED_REMEDY,
    is_preview,
    is_released,
    module_name,
    next_opset,
)
from opshift.registry.descriptions import descriptions_block, texts_of
from opshift.registry.errors import DefinitionError
from opshift.registry.models import Operator, OperatorVersion, Parameter
from opshift.registry.registry import Registry
from opshift.registry.to_yaml import SHARED_KEYS
from opshift.registry.yaml_files import dump_yaml, load_yaml


class ProposalRequest(NamedTuple):
    """Kind, operator and author of a new proposal."""

    kind: Kind
    domain: str
    name: str
    author: str = ""
    email: str = ""


def scaffold(path: Path, request: ProposalRequest, registry: Registry) -> tuple[Path, ...]:
    """Write the files of a new proposal, and return their paths.

    Raises:
        UsageError: a name is invalid, the folder already contains a proposal, the operator to add exists, the
            operator to change does not exist, is removed or defined in a document, the operator to deprecate
            is already deprecated, or the operator to deprecate or remove is not released.
    """
    require_path_names(request.domain, request.name)
    if any((path / name).exists() for name in PROPOSAL_FILES):
        reason = "the folder already contains a proposal"
        raise UsageError(reason, place=str(path), remedy="choose another folder")
    texts = _file_contents(request, registry)
    files = {path / name: text for name, text in texts.items()}
    write_files(files, new=files)
    return tuple(files)


def _file_contents(request: ProposalRequest, registry: Registry) -> dict[str, str]:
    opset = next_opset(registry, request.domain)
    # The operator to promote has the same name, in a preview or private domain.
    homes = (each for each in registry.domains() if request.kind == "promotion" and each != request.domain)
    promoted = next(filter(None, (registry.operator(request.name, each) for each in homes)), None)
    quoted = {"author": quote_yaml(request.author), "email": quote_yaml(request.email)}
    promotes = promoted.versions[-1].id if promoted else ""
    texts = {
        PROPOSAL: _fill(PROPOSAL, **{**request._asdict(), **quoted, "promotes": promotes}),
    }
    if request.kind in INTRODUCING_KINDS:
        if registry.operator(request.name, request.domain) is not None:
            reason = f"{request.domain} already has an operator {request.name}"
            raise UsageError(reason, remedy="choose another name, or propose an update")
        opset = 1 if is_preview(request.domain) else opset
        source = promoted.versions[-1] if promoted else None
        texts[EXAMPLES] = _fill(EXAMPLES, inputs=_example_inputs(source))
        texts[OPERATOR] = _new_definition(request, opset, promoted, registry)
        texts[REFERENCE] = _reference_text(request.name, source)
        if opset > 1 and request.kind != "new-function":
            texts[ADAPTERS] = _adapters_text(request, opset, (("downgrade", opset, opset - 1),))
        return texts
    operator = registry.operator(request.name, request.domain)
    if operator is None:
        known = registry.names(request.domain)
        reason = f"domain {request.domain!r} has no operator {request.name!r}"
        remedy = did_you_mean(request.name, known, "check the name, or propose a new operator")
        raise UsageError(reason, remedy=remedy)
    newest = operator.versions[-1]
    if newest.removal:
        raise UsageError(f"{newest.id} is removed", remedy="propose a new operator with another name")
    if newest.deprecation and request.kind == "deprecation":
        raise UsageError(f"{newest.id} is already deprecated", remedy="propose a removal")
    is_open = not is_released(registry, newest)
    if is_open and request.kind != "update":
        raise UsageError(f"{newest.id} is not released", remedy=UNRELEASED_REMEDY)
    texts[EXAMPLES] = _fill(EXAMPLES, inputs=_example_inputs(newest))
    texts[OPERATOR] = _changed_definition(request, operator, registry, opset)
    texts[REFERENCE] = _accepted_file(registry, "references", newest) or _reference_text(request.name, newest)
    first = newest.since_version - 1 if is_open else newest.since_version
    steps = (("upgrade", first, opset), ("downgrade", opset, first))[: 1 if request.kind == "removal" else 2]
    new = _adapters_text(request, opset, steps)
    texts[ADAPTERS] = (is_open and _accepted_file(registry, "adapters", newest)) or new
    return texts


def _accepted_file(registry: Registry, folder: str, version: OperatorVersion) -> str:
    """Return the text of the file that an accepted proposal wrote for a version; empty if there is none."""
    name = module_name(*version.id)
    paths = [tree / folder / name for tree in registry.folders]
    if folder == "adapters":  # opshift's own adapters are outside of its tree (`opsets`)
        paths += (OPSETS.parent / "adapters" / "ops").rglob(name)
    return next((path.read_text("utf-8") for path in paths if path.is_file()), "")


def _adapters_text(request: ProposalRequest, opset: int, steps: Iterable[tuple[str, int, int]]) -> str:
    """Return the text of `adapters.py`; each step (name, source, target) becomes a commented adapter."""
    comments = (
        _fill(
            "adapter.py",
            name=request.name,
            domain=request.domain,
            direction=direction,
            source=source,
            target=target,
        )
        for direction, source, target in steps
    )
    return _fill(ADAPTERS, name=request.name, opset=opset, steps="".join(comments))


EXAMPLE_VALUES = {"bool": "[[true, false], [false, true]]", "string": "[[a, b], [c, d]]"}
"""Values of the first example by element type; other types get numbers."""


def _example_inputs(version: OperatorVersion | None) -> str:
    """Return YAML for the non-optional inputs of the first example, of type `float` where it is allowed."""
    types = (
        [_example_type(version, each) for each in version.inputs if each.option != "optional"]
        if version
        else []
    )
    lines = ((each, EXAMPLE_VALUES.get(each, "[[1, 0], [2, 3]]")) for each in types)
    numbers = "  - {type: float, values: [[-1, 0], [0.5, 2]]}\n"
    return (
        "".join(
            numbers if kind == "float" else f"  - {{type: {kind}, values: {values}}}\n"
            for kind, values in lines
        )
        or numbers
    )


def _example_type(version: OperatorVersion, formal: Parameter) -> str:
    allowed = [each.removeprefix("tensor(").removesuffix(")") for each in version.types_of(formal)]
    return "float" if "float" in allowed else allowed[0]


def _new_definition(
    request: ProposalRequest, opset: int, promoted: Operator | None, registry: Registry
) -> str:
    status = "EXPERIMENTAL" if is_preview(request.domain) else "STABLE"
    has_body = request.kind == "new-function"
    # opset 1 has no previous opset to convert to
    before = "" if opset == 1 else "  before: body" if has_body else _fill("before.yaml").rstrip()
    if promoted:
        path, last = _file_of(promoted, registry), len(promoted.versions) - 1
        content = load_yaml(path)
        head = {key: content[key] for key in SHARED_KEYS if key in content}
        dropped = ["step", "before", "deprecation", "removal"]
        start = _first_lines(opset, status) + (before and f"{before}\n")
        texts = ""
        if last > 0:  # the version may inherit texts of earlier versions
            dropped.append("descriptions")
            listed = {"descriptions": descriptions_block(texts_of(promoted.versions[last]))}
            texts = textwrap.indent(_dump_block(listed), "  ")
        block = _version_text(path, last, start, dropped) + texts
        names = {"domain": request.domain, "name": request.name}
        return f"{_dump_block({**names, **head})}versions:\n{block}"
    return _fill(
        OPERATOR,
        domain=request.domain,
        name=request.name,
        opset=opset,
        status=status,
        before=before and f"\n{before}",
        body=_fill("body.yaml") if has_body else "",
    )


def _changed_definition(request: ProposalRequest, operator: Operator, registry: Registry, opset: int) -> str:
    """Return the published definition with a removal, or a copy of a released last version, appended.

    For an update of an unreleased version, return the definition unchanged.
    """
    path = _file_of(operator, registry)
    text = path.read_text("utf-8").removeprefix(HEADER).rstrip("\n") + "\n"
    *older, last = versions = load_yaml(path)["versions"]
    if request.kind == "removal":
        added = _fill("removal.yaml", opset=opset)
        expected = [*older, {**last, **_content_of(added)}]
    elif is_released(registry, operator.versions[-1]):
        # The copied version declares its own step, and inherits the texts of the original.
        dropped = ("step", "before", "descriptions")
        start = _first_lines(opset, last.get("status", "")) + _fill("step.yaml")
        deprecation = _fill("deprecation.yaml") if request.kind == "deprecation" else ""
        added = _version_text(path, len(older), start, dropped) + deprecation
        expected = [*versions, *_content_of(added)]
    else:
        return text
    is_at_end = (_content_of(text + added) or {}).get("versions") == expected
    return (text if is_at_end else _in_usual_layout(path)) + added


def _file_of(operator: Operator, registry: Registry) -> Path:
    path = registry.file_of(operator.name, operator.domain)
    if path in registry.documents:
        reason = f"{operator.domain}.{operator.name} is defined in a document"
        remedy = "write the definitions to a folder with `opshift opset load`"
        raise UsageError(reason, place=str(path), remedy=remedy)
    return path


def _first_lines(since_version: int, status: str) -> str:
    return f"- since_version: {since_version}\n" + (f"  status: {status}\n" if status else "")


def _version_text(path: Path, position: int, start: str, dropped: Iterable[str] = ()) -> str:
    """Return the text of a version without the dropped keys; `start` replaces its number and status."""
    without = ("since_version", "status", *dropped)
    content = load_yaml(path)["versions"][position]
    expected = {key: value for key, value in content.items() if key not in without}
    block = "  " + version_block(path, position).removeprefix("- ")
    for key in without:
        block = without_key(block, key)
    if (_content_of(block) or {}) != expected:  # the file has YAML aliases, or an unusual layout
        block = textwrap.indent(_dump_block(expected), "  ")
    return start + block


def _in_usual_layout(path: Path) -> str:
    """Return the text of a definition without comments, to which keys of the last version can be appended."""
    content = load_yaml(path)
    versions = content.pop("versions")
    starts = (_first_lines(each["since_version"], each.get("status", "")) for each in versions)
    blocks = (_version_text(path, position, start) for position, start in enumerate(starts))
    return f"{_dump_block(content)}versions:\n{''.join(blocks)}"


def _content_of(text: str) -> Any:
    """Return the data of a YAML text; `None` if it is invalid."""
    with suppress(DefinitionError), temporary_file(OPERATOR, text) as path:
        return load_yaml(path)
    return None


def _dump_block(content: Mapping[str, object]) -> str:
    """Return a mapping as YAML with each key in a line of its own."""
    # Add a list, and remove it again: without a list, PyYAML writes a mapping of scalars on one line.
    return dump_yaml({**content, "end": [[]]}).removesuffix("end:\n- []\n")


def _reference_text(name: str, version: OperatorVersion | None) -> str:
    inputs = ", ".join(each.name for each in version.inputs) if version else "X"
    attributes = "".join(f", {each}" for each in version.attributes) if version else ""
    return _fill(REFERENCE, name=name, inputs=inputs, attributes=f", *{attributes}" if attributes else "")


def _fill(template: str, **values: object) -> str:
    """Return the text of a template with values for its `$` placeholders."""
    text = (TEMPLATES / f"{template}.template").read_text("utf-8")
    return Template(text).substitute(values)
