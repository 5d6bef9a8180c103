"""Pages of a site, each with its path."""

from collections.abc import Mapping, Sequence
from itertools import chain, combinations

from opshift.catalogue import paths
from opshift.catalogue.documents import DocumentPage
from opshift.catalogue.kernels import runtime_rows, versions_without_kernel
from opshift.catalogue.operator_views import OperatorView, VersionView, comparison_rows
from opshift.catalogue.opset_views import OpsetView, release_with
from opshift.catalogue.rendering import Links, Pages, Renderer
from opshift.registry.changes.classify import classify
from opshift.registry.models import OperatorVersion
from opshift.registry.record import to_plain_data
from opshift.registry.registry import Registry
from opshift.registry.runtimes.runtime import Runtime

OperatorViews = Mapping[str, Sequence[OperatorView]]
"""Operators by domain."""

OpsetViews = Mapping[str, Sequence[OpsetView]]
"""Opsets by domain, oldest first."""

Runtimes = Mapping[str, Sequence[Runtime]]
"""Releases of each runtime, oldest first."""

OPERATORS, ALL_OPSETS = ("Operators", paths.HOME), ("Opsets", paths.OPSETS)
"""Links to the pages above others."""


def operator_pages(
    renderer: Renderer, operators: OperatorViews, registry: Registry, runtimes: Runtimes
) -> Pages:
    """Yield the pages about all operators: home, domains, operators and versions."""
    views = list(chain.from_iterable(operators.values()))
    yield from renderer.page(
        "home.html",
        paths.HOME,
        "Operator catalogue",
        domains=list(operators.items()),
        operators=len(views),
        versions=sum(len(each.versions) for each in views),
    )
    for domain, listed in operators.items():
        path = paths.domain_path(domain)
        newest = registry.newest_opset(domain)
        yield from renderer.page(
            "domain.html",
            path,
            domain,
            trail=(OPERATORS,),
            data={"domain": domain, "newest_opset": newest, "operators": list(map(_summary, listed))},
            domain=domain,
            views=listed,
            newest=newest,
        )
        for view in listed:
            yield from _operator_page(renderer, view, runtimes)
            for each in view.versions:
                yield from _version_pages(renderer, each)
            for old, new in combinations(view.operator.versions, 2):
                yield from _comparison_pages(renderer, view, old, new)


def _summary(view: OperatorView) -> dict[str, object]:
    newest = view.newest.version
    return {"operator": str(newest.id), "status": view.status, "summary": view.summary}


def _operator_page(renderer: Renderer, view: OperatorView, runtimes: Runtimes) -> Pages:
    domain, name = view.operator.domain, view.operator.name
    rows = list(runtime_rows(view.operator, runtimes))
    return renderer.page(
        "operator.html",
        paths.operator_path(domain, name),
        f"{domain}.{name}",
        trail=(OPERATORS, (domain, paths.domain_path(domain))),
        data={
            "versions": [each.entry.as_dict() for each in view.versions],
            "runtimes": [each.as_dict(view.operator) for each in rows],
        },
        here=name,
        view=view,
        rows=[(each, _release(view, each.version)) for each in reversed(view.versions)],
        numbers=[each.version.since_version for each in view.versions],
        runtimes=rows,
    )


def _release(view: OperatorView, version: OperatorVersion) -> str:
    return release_with(version.domain, version.since_version, view.registry)


def _version_pages(renderer: Renderer, view: VersionView) -> Pages:
    """Yield the page of a version, and the same in JSON and Markdown."""
    version = view.version
    domain, name = version.domain, version.name
    conversions, release = list(view.conversions), _release(view.operator, version)
    trail = (*_trail(version), (name, paths.operator_path(domain, name)))
    here = str(version.since_version)
    path, title = paths.version_path(version), str(version.id)
    yield from renderer.page(
        "version.html",
        path,
        title,
        trail=trail,
        data=view.as_dict(),
        here=here,
        view=view,
        conversions=conversions,
        release=release,
    )


def _comparison_pages(
    renderer: Renderer, view: OperatorView, old: OperatorVersion, new: OperatorVersion
) -> Pages:
    """Yield the comparison of two versions, and the same in JSON."""
    changes = classify(old, new)
    yield from renderer.page(
        "comparison.html",
        paths.comparison_path(old, new),
        f"{new.domain}.{new.name} {old.since_version} and {new.since_version}",
        trail=(*_trail(new), (new.name, paths.operator_path(new.domain, new.name))),
        here=f"{old.since_version} and {new.since_version}",
        data={"old": str(old.id), "new": str(new.id), "changes": [each.as_dict() for each in changes]},
        view=view,
        old=old,
        new=new,
        rows=list(comparison_rows(changes)),
    )


def _trail(version: OperatorVersion) -> Links:
    return OPERATORS, (version.domain, paths.domain_path(version.domain))


def opset_pages(renderer: Renderer, opsets: OpsetViews) -> Pages:
    """Yield the list of opsets, and the page of each."""
    yield from renderer.page("opsets.html", paths.OPSETS, "Opsets", domains=list(opsets.items()))
    for domain, listed in opsets.items():
        for each in listed:
            path, title = paths.opset_path(domain, each.opset), f"{domain} {each.opset}"
            yield from renderer.page(
                "opset.html",
                path,
                title,
                trail=(ALL_OPSETS,),
                data=each.as_dict(),
                opset=each,
                newest=listed[-1].opset,
            )


def release_page(renderer: Renderer, opsets: OpsetViews, registry: Registry) -> Pages:
    """Yield the page about releases of ONNX and of other programs."""
    existing = {(domain, each.opset) for domain, listed in opsets.items() for each in listed}
    products = registry.releases.products
    data = {
        product: {name: to_plain_data(each) for name, each in listed.items()}
        for product, listed in products.items()
    }
    return renderer.page(
        "releases.html",
        paths.RELEASES,
        "Releases",
        data=data,
        products=products,
        variants=registry.releases.variants,
        opsets=existing,
    )


def runtime_pages(renderer: Renderer, runtimes: Runtimes, registry: Registry) -> Pages:
    """Yield the list of runtimes, and the page and data of each release."""
    yield from renderer.page("runtimes.html", paths.RUNTIMES, "Runtimes", runtimes=runtimes)
    for each in chain.from_iterable(runtimes.values()):
        yield from renderer.page(
            "runtime.html",
            paths.runtime_path(each),
            each.name,
            trail=(("Runtimes", paths.RUNTIMES),),
            data=to_plain_data(each),
            runtime=each,
            operators=each.operators.items(),
            missing=list(versions_without_kernel(each, registry)),
        )


def document_pages(renderer: Renderer, documents: Sequence[DocumentPage]) -> Pages:
    """Yield the pages of the documentation, and the same in Markdown."""
    yield from renderer.page("documents.html", paths.DOCUMENTS, "Documentation", documents=documents)
    for each in documents:
        copy = f"{each.path.removesuffix('.html')}.md"
        trail = (("Documentation", paths.DOCUMENTS),)
        yield from renderer.page(
            "document.html", each.path, each.title, trail=trail, copies=(("md", copy),), document=each
        )
        yield copy, each.markdown
