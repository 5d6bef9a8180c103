"""The change log of a tree of operator sets."""

from __future__ import annotations

from opshift.proposals.draft import Defined
from opshift.proposals.signing import valid_sign_offs

TITLE = "# Changes of the operator sets\n"


def logged(text: str, draft: Defined) -> str:
    """The change log with an entry for a proposal, the newest opset first."""
    text = text or TITLE
    heading = f"## {draft.operator.domain} {draft.opset}\n"
    if heading in text:
        return text.replace(heading, f"{heading}\n{_entry(draft)}", 1).replace(
            f"{_entry(draft)}\n- ", f"{_entry(draft)}- "
        )
    first = text.find("\n## ")
    head, rest = (text, "") if first < 0 else (text[: first + 1], text[first + 1 :])
    return f"{head.rstrip()}\n\n{heading}\n{_entry(draft)}" + (f"\n{rest}" if rest else "")


def _entry(draft: Defined) -> str:
    proposal, version = draft.proposal, draft.version
    told = [f"- **{draft.operator.name}** ({proposal.kind.replace('-', ' ')}): {proposal.title}."]
    if version.step and version.step.change:
        told.append(" ".join(version.step.change.split()))
    fact = version.removal or version.deprecation
    if fact is not None:
        told.append(f"Use {fact.replaced_by}: {' '.join(fact.mapping.split())}")
    names = ", ".join(each.name for each in valid_sign_offs(draft.folder))
    told.append(f"By {proposal.author.name}; signed off by {names}.")
    return " ".join(told) + "\n"
