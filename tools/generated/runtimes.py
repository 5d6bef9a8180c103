"""Generator of the end of docs/runtimes.md: the operators that each runtime implements."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from opshift.adapters.core.adapter_table import adapter_table
from opshift.model.operator_ids import DEFAULT_DOMAIN, OperatorId
from opshift.registry.models import OperatorVersion
from opshift.registry.registry import default_registry
from opshift.registry.runtimes.files import get_runtime, runtime_files
from opshift.registry.runtimes.runtime import Runtime
from opshift.rewriting.version_graph import build_version_graph

if TYPE_CHECKING:
    import networkx as nx

PAGE: Final = Path("docs", "runtimes.md")
ROOT: Final = Path(__file__).resolve().parents[2]
MARK: Final = "<!-- The rest of this page is written by tools/generate.py -->\n"
FIRST_OPSET: Final = 13

HEAD: Final = f"""{MARK}
## Coverage

Share of the operators of ai.onnx at an opset that the newest described release of each runtime implements for
any element type, with kernels, or with function bodies whose operators it implements. Kernels of the runtime
that it falls back to do not count.

"""

REACH: Final = """
## Operators that no conversion reaches

Current operators of ai.onnx from which no steps of conversions lead to versions, or to other operators, that
a runtime implements. Steps that convert some nodes only count, too. The table leaves out runtimes with a
fallback.

| runtime | operators |
|---|---|
"""


PATHS: Final = (PAGE,)


def files() -> Mapping[Path, str]:
    """Return the page with its generated end."""
    written = (ROOT / PAGE).read_text("utf-8").partition(MARK)[0]
    newest = {name.rpartition("-")[0]: name for name in runtime_files()}
    runtimes = [get_runtime(each) for each in newest.values()]
    opsets = range(FIRST_OPSET, default_registry().newest_opset() + 1)
    head = ["runtime", *map(str, opsets)]
    rows = [head, ["---"] * len(head), *(_coverage_cells(each, opsets) for each in runtimes)]
    table = "".join(f"| {' | '.join(row)} |\n" for row in rows)
    graph = build_version_graph(default_registry().operators(), adapter_table())
    own = [each for each in runtimes if not each.falls_back]
    reach = "".join(
        f"| {each.name} | {', '.join(_unreachable_operators(each, graph)) or 'none'} |\n" for each in own
    )
    return {PAGE: written + HEAD + table + REACH + reach}


def _current_versions(opset: int) -> Iterator[OperatorVersion]:
    registry = default_registry()
    found = (registry.at(name, opset, DEFAULT_DOMAIN) for name in registry.names(DEFAULT_DOMAIN))
    yield from (each for each in found if each and each.domain == DEFAULT_DOMAIN and not each.deprecated)


def _coverage_cells(runtime: Runtime, opsets: range) -> list[str]:
    cells = [runtime.name]
    for opset in opsets:
        operators = list(_current_versions(opset))
        count = sum(implements(runtime, each, opset) for each in operators)
        is_supported = opset <= runtime.opsets[DEFAULT_DOMAIN]
        cells.append(f"{100 * count // len(operators)} %" if is_supported else "")
    return cells


def implements(runtime: Runtime, version: OperatorVersion, opset: int) -> bool:
    """Return whether a runtime has a kernel for a version, or for all operators of its function body."""
    if runtime.kernel(version.id, {}):
        return True
    if not (runtime.expands_functions and version.has_function):
        return False
    registry = default_registry()
    body = version.body.nodes if version.body else ()
    inner = [registry.at(each.op_type, opset, each.domain) for each in body]
    return all(each is not None and implements(runtime, each, opset) for each in inner)


def _unreachable_operators(runtime: Runtime, graph: nx.DiGraph[OperatorId]) -> list[str]:
    """Return the current operators from which no steps lead to operators that a runtime implements."""
    newest = runtime.opsets[DEFAULT_DOMAIN]
    versions = {node: data.get("version") for node, data in graph.nodes(data=True)}
    reached = {
        node
        for node, version in versions.items()
        if (node.since_version <= newest and version and implements(runtime, version, newest))
        or (
            version is None and not _named_operators(graph, node)
        )  # an adapter chooses the operators when it runs
    }
    count = -1
    while count != len(reached):
        count = len(reached)
        reached |= {node for node in graph if node not in reached and _leads_to(graph, node, reached)}
    current = _current_versions(default_registry().newest_opset())
    return [each.name for each in current if each.id not in reached]


def _named_operators(graph: nx.DiGraph[OperatorId], node: OperatorId) -> list[OperatorId]:
    """Return the operators that the definition names in an expansion or a function body."""
    return [each for each in graph[node] if graph.edges[node, each]["kind"] in ("replacement", "body")]


def _leads_to(graph: nx.DiGraph[OperatorId], node: OperatorId, reached: set[OperatorId]) -> bool:
    steps = [each for each in graph[node] if "step" in graph.edges[node, each]]
    named = _named_operators(graph, node)
    is_expressed = bool(named) and reached.issuperset(named)
    return is_expressed or any(
        each in reached and graph.edges[node, each]["kind"] != "refused" for each in steps
    )
