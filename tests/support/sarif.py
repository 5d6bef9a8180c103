"""Reading of SARIF documents, which are validated against the schema of the standard."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema

URI = re.compile(r"(?:[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=-]|%[0-9A-F]{2})+")
"""URI reference of RFC 3986."""

SCHEMA = Path(__file__).parent / "schemas" / "sarif-2.1.0.json"


@cache
def _validator() -> jsonschema.Draft7Validator:
    return jsonschema.Draft7Validator(json.loads(SCHEMA.read_text("utf-8")))


def read_run(text: str) -> dict[str, Any]:
    """Return the only run of a valid SARIF document; each result must refer to its rule."""
    document = json.loads(text)
    _validator().validate(document)
    (run,) = document["runs"]
    rules = run["tool"]["driver"]["rules"]
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        for location in result["locations"]:
            physical = location["physicalLocation"]
            assert physical["region"]["startLine"] >= 1
            assert URI.fullmatch(physical["artifactLocation"]["uri"])
    return run  # type: ignore[no-any-return]
