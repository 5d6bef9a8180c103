"""Append the fingerprints of new versions and runtimes to opsets/*fingerprints.yaml.

python tools/write_fingerprints.py            append new entries; exit with 1 if a recorded entry has changed
python tools/write_fingerprints.py --check    write nothing; exit with 1 if an entry is missing or has changed
python tools/write_fingerprints.py --steps    also record changed steps, which may be improved at any time
python tools/write_fingerprints.py --force    also record changes of published versions
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from opshift.registry.changes.trees import Tree, read_tree
from opshift.registry.fingerprints import (
    HEADER,
    LOCK,
    Lock,
    LockDifference,
    build_lock,
    load_lock,
    lock_differences,
    lock_text,
)
from opshift.registry.runtimes.files import FINGERPRINTS, runtime_fingerprints
from opshift.registry.yaml_files import load_yaml

OPSETS: Final = Path(__file__).resolve().parent.parent / "opsets"


def allowed(each: LockDifference, fresh: set[tuple[str, str, str]], tree: Tree) -> bool:
    """Check whether an entry may be recorded without an option: it is new, or its version is experimental."""
    operator = tree.operators.get((each.domain, each.op_type))
    version = each.entry.partition(" ")[0]
    experimental = (
        {str(v.since_version) for v in operator.versions if v.status != "STABLE"} if operator else ()
    )
    if each.is_step:  # a new version comes with its own step
        return (each.domain, each.op_type, version) in fresh
    return each.why == "new" or version in experimental


def recorded(old: Lock, now: Lock, refused: Sequence[LockDifference]) -> Lock:
    """Return the lock of the current definitions, with the refused entries as they were before."""
    found = {
        domain: {name: dict(entries) for name, entries in names.items()} for domain, names in now.items()
    }
    for each in refused:
        before = old.get(each.domain, {}).get(each.op_type, {})
        entries = found.setdefault(each.domain, {}).setdefault(each.op_type, {})
        if each.entry in before:
            entries[each.entry] = before[each.entry]
        elif each.entry in entries:
            del entries[each.entry]
        else:
            entries.update(before)
    return found


def write_runtimes(*, check: bool, force: bool) -> int:
    """Append the fingerprints of new runtimes; return 1 as `main` does."""
    old = load_yaml(FINGERPRINTS) or {} if FINGERPRINTS.exists() else {}
    now = runtime_fingerprints()
    changed = [name for name, each in old.items() if now.get(name) != each]
    for name in changed:
        print(f"{name}: the runtime differs from the published one")
    if check or (changed and not force):
        return 1 if changed or old.keys() != now.keys() else 0
    FINGERPRINTS.write_text("\n".join([HEADER, *(f'{k}: "{v}"' for k, v in now.items()), ""]), "utf-8")
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return 1 if a recorded entry has changed, or with `--check` if any entry differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=OPSETS, help="folder of definitions")
    for option in ("--check", "--steps", "--force"):
        parser.add_argument(option, action="store_true")
    given = parser.parse_args(arguments)
    tree = read_tree(given.folder)
    operators = list(tree.operators.values())
    old, now = load_lock(given.folder / LOCK), build_lock(operators)
    differences = list(lock_differences(operators, old))
    fresh = {
        (each.domain, each.op_type, each.entry)
        for each in differences
        if each.why == "new" and each.entry.isdecimal()
    }
    refused = [
        each
        for each in differences
        if not (given.force or allowed(each, fresh, tree) or (given.steps and each.is_step))
    ]
    for each in differences if given.check else refused:
        print(each)
    is_own = given.folder.resolve() == OPSETS
    runtimes_failed = write_runtimes(check=given.check, force=given.force) if is_own else 0
    if given.check:
        return 1 if differences else runtimes_failed
    text = lock_text(recorded(old, now, refused))
    if differences and len(refused) < len(differences):
        (given.folder / LOCK).write_text(text, encoding="utf-8")
        print(f"recorded {len(differences) - len(refused)} fingerprints")
    return 1 if refused else runtimes_failed


if __name__ == "__main__":
    sys.exit(main())
