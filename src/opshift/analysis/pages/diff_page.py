"""Page about the differences between two models, with drawings of both graphs at each change."""

from collections.abc import Iterator, Sequence

from opshift.analysis.model_diff.result import MARKS, DiffNode, ModelDiff, NodeDifference, Region, Status
from opshift.analysis.pages.diagram import MAX_LABEL, Box, BoxKind, mermaid, svg
from opshift.analysis.pages.document import Document, code_span, escape_line, limited_table
from opshift.model.locations import without_secrets

MAX_DRAWN_REGIONS = 40
"""Maximum number of drawn regions; only the first of several regions that differ only in names is drawn."""

MAX_DRAWN_NODES = 40
"""Maximum number of drawn nodes of one region."""

MAX_NODE_ROWS = 12
"""Maximum number of table rows of one node."""

MAX_PLACES = 20
"""Maximum number of listed places of one change."""

MAX_VALUES = 6
"""Maximum number of inputs without a drawn producer, and of outputs without a drawn reader, per node."""

KINDS: dict[Status, BoxKind] = {"added": "added", "removed": "removed", "changed": "changed"}

LEGEND = "+ added, - removed, ~ changed. Nodes without a mark are equal and show the surroundings."


def diff_page(diff: ModelDiff, title: str = "Differences between two models") -> Document:
    """Return the page; large differences are cut, with a note on the page."""
    parts = [f"# {escape_line(title)}", f"{escape_line(str(diff)).capitalize()}."]
    rows = [
        (
            escape_line(each.place),
            MARKS[change.status],
            *map(escape_line, (change.name, change.before, change.after)),
        )
        for each in diff.containers
        for change in each.properties
    ]
    if rows:
        parts += ["## Properties", *limited_table(("place", "mark", "property", "before", "after"), rows)]
    drawings: list[str] = []
    groups = [(each.place, group) for each in diff.containers for group in each.identical()]
    if groups:
        parts += ["## Nodes", escape_line(LEGEND)]
    for place, group in groups[:MAX_DRAWN_REGIONS]:
        parts += _region_section(place, group, drawings)
    if len(groups) > MAX_DRAWN_REGIONS:
        parts.append(f"Kinds of changes that are not drawn: {len(groups) - MAX_DRAWN_REGIONS:,}.")
        more = [
            (escape_line(place), escape_line(group[0].title), str(len(group)))
            for place, group in groups[MAX_DRAWN_REGIONS:]
        ]
        parts += limited_table(("place", "operators", "times"), more)
    renamed = [
        (escape_line(container.place), code_span(each.before.label), code_span(each.after.label))
        for container in diff.containers
        for each in container.renamed
        if each.before and each.after
    ]
    if renamed:
        parts += ["## Renamed", "Only names of these nodes and of their values differ."]
        parts += limited_table(("place", "before", "after"), renamed)
    return Document("\n\n".join(filter(None, parts)) + "\n", tuple(drawings))


def _region_section(place: str, group: Sequence[Region], drawings: list[str]) -> Iterator[str]:
    """Yield Markdown about identical regions, and append drawings of the first region to `drawings`."""
    region, times = group[0], f", {len(group):,} times" if len(group) > 1 else ""
    inside = "" if place == "graph" else f" in {place}"
    yield f"### {escape_line(f'{region.title}{times}{inside}')}"
    sides: dict[str, list[tuple[DiffNode, Status]]] = {
        "Before": [(each.before, each.status) for each in region.nodes if each.before],
        "After": [(each.after, each.status) for each in region.nodes if each.after],
    }
    for caption, listed in sides.items():
        boxes = _boxes_of_region(sorted(listed, key=lambda pair: pair[0].position)[:MAX_DRAWN_NODES])
        if len(listed) > MAX_DRAWN_NODES:
            caption = f"{caption} (the first {MAX_DRAWN_NODES} of {len(listed):,} nodes)"
        if boxes:
            yield mermaid(boxes, caption)
            drawings.append(svg(boxes, caption))
    rows = [row for each in region.changed for row in _node_rows(each)]
    yield from limited_table(("mark", "operator", "node", "property", "before", "after"), rows)
    if len(group) > 1:
        # The first changed node represents its region.
        labels = [code_span(next(each.changed).node.place) for each in group[1 : MAX_PLACES + 1]]
        more = len(group) - 1 - len(labels)
        yield f"The same at {', '.join(labels)}{f', and {more:,} more' if more else ''}."


def _node_rows(change: NodeDifference) -> Iterator[Sequence[str]]:
    node = change.node
    first = (MARKS[change.status], escape_line(node.operator), code_span(node.place))
    if not change.changes:
        yield (*first, "", "", "")
    for each in change.changes[:MAX_NODE_ROWS]:
        yield (*first, *map(escape_line, (each.name, each.before, each.after)))
        first = ("", "", "")
    if len(change.changes) > MAX_NODE_ROWS:
        yield (*first, f"and {len(change.changes) - MAX_NODE_ROWS} more", "", "")


def _boxes_of_region(nodes: Sequence[tuple[DiffNode, Status]]) -> list[Box]:
    """Return boxes of nodes, in their order, and of the values that changed nodes read or return."""
    boxes: list[Box] = []
    producers: dict[str, int] = {}
    read: set[str] = set()
    for node, status in nodes:
        constants = dict(node.constants)
        missing = [name for name in node.inputs if name and (name in constants or name not in producers)]
        for name in missing[:MAX_VALUES] if status != "kept" else ():
            # Each reader gets its own box for a constant, to keep lines short.
            producers[name] = len(boxes)
            boxes.append(Box(f"{_end_of_name(name, 12)} {constants.get(name, '')}".strip(), kind="value"))
        read.update(node.inputs)
        sources = dict.fromkeys(producers[name] for name in node.inputs if name in producers)
        producers.update(dict.fromkeys(filter(None, node.outputs), len(boxes)))
        label = f"{MARKS[status]} {node.operator}".strip()
        label = f"{label} {_end_of_name(node.name, MAX_LABEL - len(label) - 4)}".strip()
        boxes.append(Box(label, tuple(sources), KINDS.get(status, "node")))
    changed = [node for node, status in nodes if status != "kept"]
    results = [[name for name in each.outputs if name and name not in read] for each in changed]
    unread = [name for names in results for name in names[:MAX_VALUES]]
    return [*boxes, *(Box(_end_of_name(name, MAX_LABEL), (producers[name],), "value") for name in unread)]


def _end_of_name(name: str, length: int) -> str:
    """Return the end of a long name, without credentials: its start is often common to many nodes."""
    name = without_secrets(name)
    return name if len(name) <= length else f"...{name[-length:]}" if length > 0 else ""
