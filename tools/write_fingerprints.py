"""Write opsets/fingerprints.yaml: append the fingerprints of new versions.

python tools/write_fingerprints.py            append what is new; exit 1 if what is on record has changed
python tools/write_fingerprints.py --check    write nothing, exit 1 unless the record is complete and true
python tools/write_fingerprints.py --steps    also record how nodes are converted now, which may be improved
python tools/write_fingerprints.py --force    also record what has changed although it is published
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from opshift.registry.changes.trees import Tree, read_tree
from opshift.registry.fingerprints import LOCK, Lock, Moved, load_lock, lock_text, locked, moved

OPSETS: Final = Path(__file__).resolve().parent.parent / "opsets"


def allowed(each: Moved, fresh: set[tuple[str, str, str]], tree: Tree) -> bool:
    """Whether an entry may be recorded without being asked: it is new, or its version is no promise."""
    operator = tree.operators.get((each.domain, each.op_type))
    version = each.entry.partition(" ")[0]
    experimental = (
        {str(v.since_version) for v in operator.versions if v.status != "STABLE"} if operator else ()
    )
    if each.is_step:
        return (each.domain, each.op_type, version) in fresh
    if each.entry == "shared":
        return any(key[:2] == (each.domain, each.op_type) for key in fresh)
    return each.why == "new" or version in experimental


def recorded(old: Lock, now: Lock, refused: Sequence[Moved]) -> Lock:
    """The record as the definitions have it now, but for what is refused."""
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


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; 1 if something on record has changed, or with `--check` if anything is off."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=OPSETS, help="the tree of definitions")
    for option in ("--check", "--steps", "--force"):
        parser.add_argument(option, action="store_true")
    given = parser.parse_args(arguments)
    tree = read_tree(given.folder)
    operators = list(tree.operators.values())
    old, now = load_lock(given.folder / LOCK), locked(operators)
    differences = list(moved(operators, old))
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
    if given.check:
        return 1 if differences else 0
    text = lock_text(recorded(old, now, refused))
    if differences and len(refused) < len(differences):
        (given.folder / LOCK).write_text(text, encoding="utf-8")
        print(f"recorded {len(differences) - len(refused)} fingerprints")
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main())
