"""Fingerprints, which detect changes to published operator versions.

A fingerprint is a hash of the canonical form: JSON with sorted keys that contains the definition without
`SEPARATE_KEYS`, with type sets expanded and defaults omitted.

Removals, function bodies and steps (the conversions of nodes) have separate fingerprints.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, Literal, NamedTuple

from opshift.model.errors import require_type
from opshift.registry.models import Operator, OperatorVersion
from opshift.registry.record import from_file_content
from opshift.registry.to_yaml import SHARED_KEYS, PlainData, operator_to_dict, version_to_dict

LOCK: Final = "fingerprints.yaml"

BODY_KEYS: Final = ("body", "has_context_dependent_function")

SEPARATE_KEYS: Final = (
    "requires",
    "descriptions",
    "known_mistakes",
    "step",
    "before",
    "removal",
    "equivalents",
    *BODY_KEYS,
)
"""Keys excluded from the fingerprint of a version, because they may be added or improved later."""

HEADER: Final = "# Written by tools/write_fingerprints.py: hashes that detect changes to published versions"

Lock = dict[str, dict[str, dict[str, str]]]
"""Fingerprints by domain, operator and entry (`shared`, `13`, `13 body`, `13 step` or `removal`)."""


def fingerprint(version: OperatorVersion) -> str:
    """Return the fingerprint of a version's definition: 32 hexadecimal digits.

    The fingerprint covers the version without `SEPARATE_KEYS`, but with the other `SHARED_KEYS` of its file.

    Raises:
        UsageError: the argument is not an operator version.
    """
    require_type("version", version, OperatorVersion, "an OperatorVersion")
    return digest({"id": str(version.id), **_without_keys(version_to_dict(version), SEPARATE_KEYS)})


def operator_fingerprints(operator: Operator) -> dict[str, str]:
    """Return the fingerprints of an operator by entry, see `Lock`.

    The entry `shared` covers the keys at the top of the file. The entry of a version covers these keys only
    if the version overrides them.
    """
    data = operator_to_dict(operator)
    found = {
        "shared": digest(_without_keys({key: data[key] for key in SHARED_KEYS if key in data}, SEPARATE_KEYS))
    }
    for version in data["versions"]:
        since = str(version["since_version"])
        found[since] = digest(_without_keys(version, SEPARATE_KEYS))
        for entry, keys in (("body", BODY_KEYS), ("step", ("step", "before"))):
            content = {key: version[key] for key in keys if key in version}
            if content:
                found[f"{since} {entry}"] = digest(content)
        if "removal" in version:
            found["removal"] = digest(version["removal"])
    return found


def digest(content: object) -> str:
    """Return a hash of plain data: 32 hexadecimal digits."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def load_lock(path: Path) -> Lock:
    """Read `fingerprints.yaml`; raise `DefinitionError` if it is invalid. A missing file counts as empty."""
    from opshift.registry.yaml_files import load_yaml

    return from_file_content(Lock, (load_yaml(path) or {}) if path.exists() else {}, path)


class LockDifference(NamedTuple):
    """An entry whose fingerprint differs between the definitions and the lock, `fingerprints.yaml`."""

    domain: str
    op_type: str
    entry: str
    why: Literal["changed", "missing", "new"]
    """`missing`: only the lock has the entry; `new`: only the definitions have it."""
    now: str = ""
    """The fingerprint of the definitions; empty if `why` is `missing`."""

    @property
    def is_step(self) -> bool:
        """Whether the entry covers the conversion of nodes, not the definition of the operator."""
        return self.entry.endswith(" step")

    def __str__(self) -> str:
        problems = {
            "changed": "differs from the published fingerprint",
            "missing": "is missing",
            "new": "is not recorded",
        }
        return f"{self.domain}.{self.op_type}: entry {self.entry!r} {problems[self.why]}"


def lock_differences(operators: Iterable[Operator], lock: Lock) -> Iterator[LockDifference]:
    """Yield each difference between the fingerprints of operators and those in a lock."""
    missing = {(domain, name) for domain, names in lock.items() for name in names}
    for operator in operators:
        key = (operator.domain, operator.name)
        missing.discard(key)
        now, locked = operator_fingerprints(operator), lock.get(operator.domain, {}).get(operator.name, {})
        for entry, value in now.items():
            if locked.get(entry) != value:
                yield LockDifference(*key, entry, "changed" if entry in locked else "new", value)
        yield from (LockDifference(*key, entry, "missing") for entry in locked.keys() - now.keys())
    yield from (LockDifference(*key, "the operator", "missing") for key in sorted(missing))


def build_lock(operators: Iterable[Operator]) -> Lock:
    """Return the fingerprints of operators as a lock, sorted by domain and name."""
    found: Lock = {}
    for operator in sorted(operators, key=lambda each: (each.domain, each.name)):
        found.setdefault(operator.domain, {})[operator.name] = operator_fingerprints(operator)
    return found


def lock_text(lock: Lock) -> str:
    """Return the content of `fingerprints.yaml` for a lock."""
    lines = [HEADER]
    for domain, operators in lock.items():
        lines.append(f"{domain}:")
        for name, entries in operators.items():
            lines.append(f"  {name}:")
            lines += [f'    "{entry}": "{value}"' for entry, value in entries.items()]
    return "\n".join(lines) + "\n"


def _without_keys(fields: PlainData, keys: tuple[str, ...]) -> PlainData:
    return {key: value for key, value in fields.items() if key not in keys}
