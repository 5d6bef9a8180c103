"""Change log of a tree of operator sets."""

from __future__ import annotations

from opshift.proposals.draft import Defined
from opshift.proposals.signing import valid_sign_offs

TITLE = "# Changes of the operator sets\n"


def logged(text: str, draft: Defined) -> str:
    """Return the change log with an entry for the proposal added; the newest opset comes first."""
    text = text or TITLE
    heading = f"## {draft.operator.domain} {draft.opset}\n"
    if heading in text:
        # The second replacement removes the empty line between the new entry and the entries that follow it.
        return text.replace(heading, f"{heading}\n{_changelog_entry(draft)}", 1).replace(
            f"{_changelog_entry(draft)}\n- ", f"{_changelog_entry(draft)}- "
        )
    first = text.find("\n## ")
    head, rest = (text, "") if first < 0 else (text[: first + 1], text[first + 1 :])
    return f"{head.rstrip()}\n\n{heading}\n{_changelog_entry(draft)}" + (f"\n{rest}" if rest else "")


def _changelog_entry(draft: Defined) -> str:
    proposal, version = draft.proposal, draft.version
    sentences = [f"- **{draft.operator.name}** ({proposal.kind.replace('-', ' ')}): {proposal.title}."]
    if version.step and version.step.change:
        sentences.append(" ".join(version.step.change.split()))
    retirement = version.removal or version.deprecation
    if retirement is not None:
        sentences.append(f"Use {retirement.replaced_by}: {' '.join(retirement.mapping.split())}")
    names = ", ".join(each.name for each in valid_sign_offs(draft.folder))
    sentences.append(f"By {proposal.author.name}; signed off by {names}.")
    return " ".join(sentences) + "\n"
