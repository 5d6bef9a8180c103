"""Software bills of materials: the components of a wheel or a site, and their licences.

Source: the CycloneDX specification, version 1.6, and PEP 770 for wheels.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from importlib.metadata import metadata
from typing import Final
from urllib.parse import quote

NAME: Final = "opshift.cdx.json"
"""Name of the file; `.cdx.json` is the suffix of CycloneDX documents in JSON."""

CLASSIFIER: Final = "License :: OSI Approved :: "

Component = dict[str, object]


def component(name: str, version: str, licence: str, purl: str) -> Component:
    """Return a component; `purl` is a package URL, `licence` is an SPDX expression or a licence name."""
    is_expression = " " not in licence or " OR " in licence or " AND " in licence
    named: object = {"expression": licence} if is_expression else {"license": {"name": licence}}
    return {"type": "library", "name": name, "version": version, "purl": purl, "licenses": [named]}


def installed_component(distribution: str) -> Component:
    """Return the component of an installed distribution, with the licence from its metadata."""
    found = metadata(distribution)
    named = [*(found.get_all("License-Expression") or ()), *(found.get_all("License") or ())]
    classifiers = (each for each in found.get_all("Classifier") or () if each.startswith(CLASSIFIER))
    named += (each.removeprefix(CLASSIFIER) for each in classifiers)
    # a longer text is the licence itself, not its name
    licence = next((each for each in named if len(each) < 80), "unknown")
    version = found["Version"]
    return component(distribution, version, licence, f"pkg:pypi/{distribution}@{quote(version)}")


def software_bill(version: str, components: Iterable[Component] = ()) -> str:
    """Return the bill of opshift as CycloneDX JSON; `components` are the other components shipped with it."""
    own = component("opshift", version, "Apache-2.0", f"pkg:pypi/opshift@{quote(version)}")
    bill = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": own},
        "components": list(components),
    }
    return json.dumps(bill, indent=2) + "\n"
