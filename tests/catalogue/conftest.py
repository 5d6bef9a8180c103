"""The site of all definitions, which takes seconds to build, and its pages."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from support.site_pages import Page

from opshift.catalogue.site import build_site
from opshift.registry.registry import default_registry

URL = "https://example.com/operators"


@pytest.fixture(scope="session")
def files() -> Mapping[str, str]:
    return build_site(default_registry(), "1.2.3", url=URL)


@pytest.fixture(scope="session")
def pages(files: Mapping[str, str]) -> Mapping[str, Page]:
    return {path: Page(text) for path, text in files.items() if path.endswith(".html")}
