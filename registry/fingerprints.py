"""Fingerprints: a published operator version never changes, and what it was is on record.

A fingerprint is taken of the canonical form: everything that a definition says, spelled out (type sets, what
the top of the file says for all versions, defaults left out), as JSON with sorted keys. So the layout of the
file, its comments and the order of its keys are not part of it, and every word and number is.

Facts that come later than the version are kept apart from it, with fingerprints of their own: the removal of
the operator, and the steps, which say how the registry converts and may be improved.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from pydantic import TypeAdapter, ValidationError

from opshift.registry.errors import DefinitionError, Place
from opshift.registry.models import Operator, OperatorVersion
from opshift.registry.written import STATED_ONCE, written_operator, written_version

LOCK: Final = "fingerprints.yaml"
LATER: Final = ("step", "before", "removal")
"""What is no part of a version's own fingerprint."""
HEAD: Final = (
    "# Written by tools/write_fingerprints.py; what a published version is, so that none changes unseen"
)
Lock = dict[str, dict[str, dict[str, str]]]
"""Domain to operator to entry (`shared`, `13`, `13 step`, `removal`) to fingerprint."""


def fingerprint(version: OperatorVersion) -> str:
    """What identifies a version's definition: 32 hexadecimal digits.

    Steps and removal are not part of it; all else is, down to the description's last character.
    """
    return digest({"id": str(version.id), **_without(written_version(version), LATER)})


def operator_fingerprints(operator: Operator) -> dict[str, str]:
    """Every entry of an operator's in `fingerprints.yaml`.

    `shared` is what stands once at the top of the file; a version's own entry has of these only what it
    says otherwise, so that a new version may come with a new description.
    """
    return dict(_entries(written_operator(operator)))


def digest(content: Any) -> str:
    """The fingerprint of plain data: 32 hexadecimal digits."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def load_lock(path: Path) -> Lock:
    """Read a `fingerprints.yaml`; a missing file holds none.

    Raises:
        DefinitionError: it is not YAML, or breaks the format.
    """
    from opshift.registry.yaml_files import load_yaml

    content = (load_yaml(path) or {}) if path.exists() else {}
    try:
        return _LOCK.validate_python(content)
    except ValidationError as error:
        first = error.errors()[0]
        raise DefinitionError(f"{first['loc']}: {first['msg']}", place=Place(str(path))) from error


class Moved(NamedTuple):
    """One entry that is not as the lock has it."""

    domain: str
    op_type: str
    entry: str
    why: Literal["changed", "missing", "new"]
    """`missing` from the definitions, `new` to the lock."""
    now: str = ""

    @property
    def is_step(self) -> bool:
        """Whether it is about how nodes are converted, not about what the operator is."""
        return self.entry.endswith(" step")

    def __str__(self) -> str:
        told = {"changed": "is not what was published", "missing": "is gone", "new": "is not on record"}
        return f"{self.domain}.{self.op_type}: {self.entry} {told[self.why]}"


def moved(operators: Iterable[Operator], lock: Lock) -> Iterator[Moved]:
    """Every entry that differs between definitions and a lock."""
    left = {(domain, name) for domain, names in lock.items() for name in names}
    for operator in operators:
        locked = lock.get(operator.domain, {}).get(operator.name, {})
        left.discard((operator.domain, operator.name))
        yield from _moved(operator, operator_fingerprints(operator), locked)
    yield from (Moved(domain, name, "the operator", "missing") for domain, name in sorted(left))


def locked(operators: Iterable[Operator]) -> Lock:
    """The lock of some definitions as they are, sorted."""
    found: Lock = {}
    for operator in sorted(operators, key=lambda each: (each.domain, each.name)):
        found.setdefault(operator.domain, {})[operator.name] = operator_fingerprints(operator)
    return found


def lock_text(lock: Lock) -> str:
    """The content of a `fingerprints.yaml`."""
    lines = [HEAD]
    for domain, operators in lock.items():
        lines.append(f"{domain}:")
        for name, entries in operators.items():
            lines.append(f"  {name}:")
            lines += [f'    "{entry}": "{value}"' for entry, value in entries.items()]
    return "\n".join(lines) + "\n"


def _moved(operator: Operator, now: Mapping[str, str], locked: Mapping[str, str]) -> Iterator[Moved]:
    for entry, value in now.items():
        if entry not in locked:
            yield Moved(operator.domain, operator.name, entry, "new", value)
        elif locked[entry] != value:
            yield Moved(operator.domain, operator.name, entry, "changed", value)
    for entry in locked.keys() - now.keys():
        yield Moved(operator.domain, operator.name, entry, "missing")


def _entries(written: dict[str, Any]) -> Iterator[tuple[str, str]]:
    yield "shared", digest({key: written[key] for key in STATED_ONCE if key in written})
    for version in written["versions"]:
        since = str(version["since_version"])
        yield since, digest(_without(version, LATER))
        steps = {key: version[key] for key in ("step", "before") if key in version}
        if steps:
            yield f"{since} step", digest(steps)
        if "removal" in version:
            yield "removal", digest(version["removal"])


def _without(fields: dict[str, Any], keys: tuple[str, ...]) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if key not in keys}


_LOCK: Final = TypeAdapter(Lock)
