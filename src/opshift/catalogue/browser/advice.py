"""Advice of the page that converts: remedies as controls, and conversions that succeed instead."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Final, TypedDict

from opshift.converter.refusals import Refusal
from opshift.model.operator_ids import DEFAULT_DOMAIN

OPTIONS: Final = '<a href="#convert-options">Options</a>'

REMEDIES: Final = (
    (r"pass <code>--allow</code> with the named deviation", f"choose the named deviation under {OPTIONS}"),
    (
        r"(?:pass |with |drop it with )?(?:<code>)?--allow ([\w-]+)(?:</code>)?(?: \(allow= in Python\))?",
        rf"choose <code>\1</code> under {OPTIONS}",
    ),
    (r"with <code>--shape [^<]*</code> \(<code>shapes=</code> in Python\)", f"under {OPTIONS}"),
    (r",? ?(?:or )?try (?:<code>)?--infer-shapes(?:</code>)?(?: \(infer_shapes=True\))?", ""),
    (r"--shape ('[^']*'|&quot;.*?&quot;|[^\s<,;]+)(?: \(shapes=[^)]*\))?", rf"declare \1 under {OPTIONS}"),
)
"""Options of the command line in the HTML of a report, and the words for those of the page."""

CAUSE: Final = re.compile(r"<h3>(.*?)</h3>\n(.*?)(?=<h[23]|\Z)", re.DOTALL)

ALLOW: Final = re.compile(r"--allow ([\w-]+)")

MAX_ATTEMPTS: Final = 4


class Offer(TypedDict, total=False):
    """Conversion that a button of the page starts: another target, or allowed deviations."""

    label: str
    target: str
    allow: Sequence[str]


def with_controls(html: str) -> str:
    """Return the HTML of a report whose remedies name controls; all causes but the first are folded."""
    for pattern, words in REMEDIES:
        html = re.sub(pattern, words, html)
    html = CAUSE.sub(r"<details><summary>\1</summary>\n\2</details>\n", html)
    return html.replace("<details>", "<details open>", 1)


def offers(
    refusals: Sequence[Refusal],
    source: int,
    allowed: Collection[str],
    refused_at: Callable[[int], Sequence[Refusal]],
) -> Iterator[Offer]:
    """Yield conversions that may succeed.

    Args:
        refusals: refusals of a conversion.
        source: opset of ai.onnx before it.
        allowed: deviations that it allowed.
        refused_at: returns the refusals at another opset of ai.onnx.
    """
    found = refusals
    for _ in range(MAX_ATTEMPTS):
        opset = _nearest(found)
        if opset in (0, source):
            break
        found = refused_at(opset)
        if not found:
            yield {"label": f"Convert to opset {opset} instead", "target": str(opset)}
            break
    deviations = sorted({name for each in refusals for name in ALLOW.findall(each.remedy)} - {*allowed})
    if deviations and all(ALLOW.search(each.remedy) for each in refusals):
        yield {"label": f"Allow {', '.join(deviations)}", "allow": deviations}


def _nearest(refusals: Sequence[Refusal]) -> int:
    """Return the opset nearest to the target that all nodes may reach; 0 if it is unknown."""
    if not all(each.nearest and each.domain == DEFAULT_DOMAIN for each in refusals):
        return 0
    numbers = [each.nearest for each in refusals]
    return max(numbers) if min(numbers) > refusals[0].target else min(numbers)
