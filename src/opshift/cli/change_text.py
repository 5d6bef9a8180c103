"""A change in a line: of types only those that came and went."""

from __future__ import annotations

from opshift.cli.typenames import short
from opshift.registry.diff import Change


def change_text(change: Change) -> str:
    """`input types: X: also tensor(bfloat16)`; other changes as they say themselves."""
    if not change.kind.endswith("_types"):
        return str(change)
    added, lost = change.new - change.old, change.old - change.new
    parts = [f"also {short(added)}"] if added else []
    parts += [f"no longer {short(lost)}"] if lost else []
    return f"{change.kind.replace('_', ' ')}: {change.subject}: {', '.join(parts)}"
