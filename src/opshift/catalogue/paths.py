"""Permanent paths of pages, relative to the folder of the site, and links between pages."""

from posixpath import dirname, relpath
from urllib.parse import quote

from opshift.registry.models import OperatorVersion
from opshift.registry.runtimes.runtime import Runtime

HOME, OPSETS, RELEASES, DOCUMENTS = "index.html", "opsets.html", "releases.html", "docs/index.html"
CONVERTER, RUNTIMES, CHANGES, MISSING = "convert.html", "runtimes/index.html", "changes.html", "404.html"
IMAGE = "social.png"


def domain_path(domain: str) -> str:
    """Return the path of the list of a domain's operators."""
    return f"operators/{domain}/index.html"


def operator_path(domain: str, name: str) -> str:
    """Return the path of an operator's page."""
    return f"operators/{domain}/{name}/index.html"


def version_path(version: OperatorVersion, suffix: str = "html") -> str:
    """Return the path of the page of an operator version, or of its copy in another format."""
    return f"operators/{version.domain}/{version.name}/{version.since_version}.{suffix}"


def comparison_path(old: OperatorVersion, new: OperatorVersion, suffix: str = "html") -> str:
    """Return the path of the comparison of two versions of an operator."""
    return f"operators/{new.domain}/{new.name}/{old.since_version}-{new.since_version}.{suffix}"


def runtime_path(runtime: Runtime, suffix: str = "html") -> str:
    """Return the path of a runtime's page, or of its data."""
    return f"runtimes/{runtime.name}.{suffix}"


def opset_path(domain: str, opset: int) -> str:
    """Return the path of an opset's page."""
    return f"opsets/{domain}/{opset}.html"


def link(target: str, page: str) -> str:
    """Return the URL of `target` relative to `page`, which also works for local files without a server."""
    path, _, fragment = target.partition("#")
    return quote(relpath(path, dirname(page) or ".")) + (f"#{quote(fragment)}" if fragment else "")
