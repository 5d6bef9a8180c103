"""Changes of a definition as text."""

from __future__ import annotations

from opshift.cli.typenames import short
from opshift.registry.diff import Change


def change_text(change: Change) -> str:
    """Return a change as one line; a change of types lists the added and removed types only.

    Example: `input types: X: also tensor(bfloat16)`.
    """
    if not change.kind.endswith("_types"):
        return str(change)
    added, removed = change.new - change.old, change.old - change.new
    parts = [f"also {short(added)}"] if added else []
    parts += [f"no longer {short(removed)}"] if removed else []
    return f"{change.kind.replace('_', ' ')}: {change.subject}: {', '.join(parts)}"
