"""Write docs/proposal-rules.md: every rule that a proposal is judged by.

python tools/write_proposal_rules.py            write it if it is stale
python tools/write_proposal_rules.py --check    write nothing, exit 1 if it is stale
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from opshift.proposals.rules.table import Rule, rule_table

ROOT: Final = Path(__file__).resolve().parent.parent
PAGE: Final = ROOT / "docs" / "proposal-rules.md"
HEAD: Final = """<!-- Written by tools/write_proposal_rules.py -->
# Rules for proposals

`opshift proposal check` judges by these; those marked *accept* count when a proposal is to be accepted. An
error stands in the way, a warning is for the author and reviewers to weigh, an info is advice.
`opshift proposal explain RULE` says what a rule is for.

| rule | level | asks that | comes from |
|---|---|---|---|
"""


def page() -> str:
    """The text of the page."""
    return HEAD + "\n".join(map(_row, rule_table().values())) + "\n"


def _row(rule: Rule) -> str:
    level = f"{rule.level}, *accept*" if rule.gate == "accept" else str(rule.level)
    return f"| `{rule.id}` | {level} | {rule.title} | {rule.source} |"


def stale() -> bool:
    """Whether the page is missing or not what the rules are now."""
    return not PAGE.exists() or PAGE.read_text(encoding="utf-8") != page()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; 1 if `--check` finds the page stale."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing")
    given = parser.parse_args(arguments)
    if not stale():
        return 0
    if given.check:
        print("docs/proposal-rules.md is stale; run python tools/write_proposal_rules.py")
        return 1
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
