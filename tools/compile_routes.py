"""Write converter/compiled.json: the routes in the graph of versions, and the modules of adapters.

python tools/compile_routes.py            write it if it is stale
python tools/compile_routes.py --check    write nothing, exit 1 if it is stale
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any, Final

import networkx as nx

from opshift.adapters.table import adapter_table
from opshift.converter.lineage import lineage
from opshift.registry.catalogue import default_registry
from opshift.registry.models import Operator

ROOT: Final = Path(__file__).resolve().parent.parent
FILE: Final = ROOT / "converter" / "compiled.json"


def text() -> str:
    """What the file has to hold: a line for each operator."""
    operators = {f"{each.domain}.{each.name}": _routes(each) for each in default_registry().operators()}
    adapters = {
        str(pair): function.__module__
        for pair, function in sorted(adapter_table().items())
        if function.__module__.startswith("opshift.adapters.")  # not what else is installed
    }
    lines = [f" {json.dumps(name)}: {json.dumps(found)}" for name, found in operators.items()]
    modules = [f" {json.dumps(pair)}: {json.dumps(module)}" for pair, module in adapters.items()]
    return "{{\n{}: {{\n{}\n}},\n{}: {{\n{}\n}}\n}}\n".format(
        '"operators"', ",\n".join(lines), '"adapters"', ",\n".join(modules)
    )


def _routes(operator: Operator) -> dict[str, Any]:
    graph = lineage(operator, adapter_table())
    paths = {
        f"{start.since_version} -> {goal.since_version}": [each.since_version for each in path]
        for start, found in nx.all_pairs_shortest_path(graph)
        for goal, path in found.items()
        if start != goal
    }
    return {"versions": [each.since_version for each in operator.versions], "paths": paths}


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--check", action="store_true")
    is_check = parser.parse_args().check
    wanted = text()
    if FILE.exists() and FILE.read_text(encoding="utf-8") == wanted:
        return
    if is_check:
        sys.exit(f"{FILE} is stale: run python tools/compile_routes.py")
    FILE.write_text(wanted, encoding="utf-8")
    print(f"written: {FILE}")


if __name__ == "__main__":
    main()
