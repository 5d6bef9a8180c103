"""Generator of docs/refusals.md: the causes of refusals."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from opshift.registry.explanations import refusal_causes

HEAD: Final = """<!-- Written by tools/generate.py -->
# Refusals

A conversion that cannot be exact is refused as a whole: `opshift convert` writes nothing, and
`convert_version` raises `ConversionRefused`. `opshift plan` groups the refused nodes by cause, and
`opshift reach` shows the opsets that they reach; with `--format json`, both list all nodes.

Each refusal has a code, which never changes. In Python, `ConversionRefused.refusals` has one `Refusal` with
`code`, `title`, `reason` and `remedy` for each node, and `ConversionRefused.groups` has one `RefusalGroup`
for each cause.

| code | meaning |
|---|---|
"""


PAGE: Final = Path("docs", "refusals.md")
PATHS: Final = (PAGE,)


def files() -> Mapping[Path, str]:
    """Return the page."""
    causes = refusal_causes()
    rows = "".join(
        f"| [`{code}`](#{code.replace('.', '')}) | {each.title} |\n" for code, each in causes.items()
    )
    sections = "".join(
        f"\n## {code}\n\n{each.title}. {each.cause}\n\nExample: {each.example}\n\n"
        f"What to do: {each.remedy}.\n"
        for code, each in causes.items()
    )
    return {PAGE: HEAD + rows + sections}
