"""Pages of a site, each with its path."""

from collections.abc import Mapping, Sequence
from itertools import chain, combinations
from urllib.parse import urlsplit

from opshift.catalogue import paths
from opshift.catalogue.documents import DocumentPage, pages_by_task
from opshift.catalogue.kernels import State, operator_support, opset_shares, runtime_rows
from opshift.catalogue.rendering import Links, Pages, Renderer
from opshift.catalogue.views import (
    ConversionRow,
    OperatorView,
    OpsetView,
    VersionView,
    comparison_groups,
    release_with,
)
from opshift.catalogue.words import CHANGE_LABELS
from opshift.model.operator_ids import DEFAULT_DOMAIN
from opshift.registry.changes.classes import ChangeClass
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

OPERATORS, ALL_OPSETS = ("Operators", f"{paths.HOME}#operators"), ("Opsets", paths.OPSETS)
"""Title and path of the parent page of operator pages, and of the parent page of opset pages."""

ABOUT = (
    "opshift converts ONNX models up and down between opsets. It knows every version of every operator, and "
    "which runtimes implement it."
)


def index_page(renderer: Renderer, operators: OperatorViews, opsets: OpsetViews, runtimes: Runtimes) -> Pages:
    """Yield the home page: an introduction, and all operators by category."""
    views = list(chain.from_iterable(operators.values()))
    categories: dict[str, list[OperatorView]] = {}
    for each in views:
        if not each.newest.version.removal:
            categories.setdefault(each.category, []).append(each)
    return renderer.page(
        "home.html",
        paths.HOME,
        "opshift: ONNX operators and model conversion",
        description=ABOUT,
        domains=list(operators),
        categories=sorted(categories.items(), key=_category_order),
        removed=[each for each in views if each.newest.version.removal],
        newest=_main_opsets(opsets)[-1],
        operators=len(views),
        versions=sum(len(each.versions) for each in views),
        runtimes=len(runtimes),
        releases=sum(map(len, runtimes.values())),
    )


def _category_order(category: tuple[str, Sequence[OperatorView]]) -> tuple[bool, bool, str]:
    """Return a sort key: categories of ai.onnx are first, categories that are a whole domain are last."""
    title, (first, *_) = category
    domain = first.operator.domain
    return title == domain, domain != DEFAULT_DOMAIN, title


def operator_pages(
    renderer: Renderer, operators: OperatorViews, registry: Registry, runtimes: Runtimes
) -> Pages:
    """Yield the pages about all operators: domains, operators, versions and comparisons."""
    for domain, listed in operators.items():
        path = paths.domain_path(domain)
        newest = registry.newest_opset(domain)
        yield from renderer.page(
            "domain.html",
            path,
            domain,
            description=f"The {len(listed)} operators of {domain}, with their versions.",
            trail=(OPERATORS,),
            data={"domain": domain, "newest_opset": newest, "operators": list(map(_summary_data, listed))},
            domain=domain,
            views=listed,
            newest=newest,
        )
        for view in listed:
            yield from _pages_of_operator(renderer, view, runtimes)
            for each in view.versions:
                yield from _version_pages(renderer, each)
            for old, new in combinations(view.operator.versions, 2):
                yield from _comparison_pages(renderer, view, old, new)


def _summary_data(view: OperatorView) -> dict[str, object]:
    newest = view.newest.version
    return {"operator": str(newest.id), "status": view.status, "summary": view.summary}


def _pages_of_operator(renderer: Renderer, view: OperatorView, runtimes: Runtimes) -> Pages:
    domain, name = view.operator.domain, view.operator.name
    rows = list(runtime_rows(view.operator, runtimes))
    return renderer.page(
        "operator.html",
        paths.operator_path(domain, name),
        f"{domain}.{name}",
        description=f"{view.summary}. Signature, example, versions, runtimes and conversions of {name}.",
        trail=(OPERATORS, (domain, paths.domain_path(domain))),
        data={
            "versions": [each.entry.as_dict() for each in view.versions],
            "runtimes": [each.as_dict(view.operator) for each in rows],
        },
        here=name,
        view=view,
        rows=[(each, _release_of(view, each.version)) for each in reversed(view.versions)],
        numbers=[each.version.since_version for each in view.versions],
        runtimes=rows,
        states=list(State),
        conversions=_conversion_rows(view),
        example_conversions=view.example_conversions,
    )


def _conversion_rows(view: OperatorView) -> list[ConversionRow]:
    """Return the conversions with a single step of all versions of an operator, the newest first."""
    rows = [row for each in reversed(view.versions) for row in each.conversions]
    return list({(row.source, row.opset): row for row in rows}.values())


def _release_of(view: OperatorView, version: OperatorVersion) -> str:
    return release_with(version.domain, version.since_version, view.registry)


def _version_pages(renderer: Renderer, view: VersionView) -> Pages:
    """Yield the page of an operator version, and its copies in JSON and Markdown."""
    version = view.version
    domain, name = version.domain, version.name
    conversions, release = list(view.conversions), _release_of(view.operator, version)
    trail = (*_parent_links(version), (name, paths.operator_path(domain, name)))
    here = str(version.since_version)
    path, title = paths.version_path(version), str(version.id)
    yield from renderer.page(
        "version.html",
        path,
        title,
        description=f"{name} as opset {version.since_version} defines it: {view.operator.summary}.",
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
    """Yield the comparison page of two versions, and its copies in JSON and Markdown."""
    changes = classify(old, new)
    yield from renderer.page(
        "comparison.html",
        paths.comparison_path(old, new),
        f"{new.domain}.{new.name} {old.since_version} to {new.since_version}",
        description=f"Changes of {new.name} from version {old.since_version} to {new.since_version}.",
        trail=(*_parent_links(new), (new.name, paths.operator_path(new.domain, new.name))),
        here=f"{old.since_version} to {new.since_version}",
        data={"old": str(old.id), "new": str(new.id), "changes": [each.as_dict() for each in changes]},
        view=view,
        old=old,
        new=new,
        groups=comparison_groups(changes),
    )


def _parent_links(version: OperatorVersion) -> Links:
    return OPERATORS, (version.domain, paths.domain_path(version.domain))


def opset_pages(renderer: Renderer, opsets: OpsetViews) -> Pages:
    """Yield the list of opsets, the changes between opsets of ai.onnx, and a page for each opset."""
    yield from renderer.page(
        "opsets.html",
        paths.OPSETS,
        "Opsets",
        description="All opsets of ONNX with their new, changed and removed operators.",
        domains=list(opsets.items()),
    )
    yield from _changes_page(renderer, _main_opsets(opsets))
    for domain, listed in opsets.items():
        for each in listed:
            path, title = paths.opset_path(domain, each.opset), f"{domain} {each.opset}"
            yield from renderer.page(
                "opset.html",
                path,
                title,
                description=f"New, changed and removed operators of opset {each.opset} of {domain}.",
                trail=(ALL_OPSETS,),
                data=each.as_dict(),
                opset=each,
                newest=listed[-1].opset,
                changes=_changes_by_class(each.changed),
            )


def _main_opsets(opsets: OpsetViews) -> Sequence[OpsetView]:
    """Return the opsets of ai.onnx, or of the first domain if the site has no ai.onnx."""
    return opsets.get(DEFAULT_DOMAIN) or next(iter(opsets.values()))


def _changes_by_class(
    changed: Sequence[VersionView],
) -> list[tuple[ChangeClass, list[tuple[str, list[VersionView]]]]]:
    """Group changed versions by class, most severe first, and in each class by the text of the change."""
    found: dict[ChangeClass, dict[str, list[VersionView]]] = {}
    for each in changed:
        assert each.change_class
        found.setdefault(each.change_class, {}).setdefault(each.entry.change, []).append(each)
    severity = list(ChangeClass).index
    return [(key, list(found[key].items())) for key in sorted(found, key=severity, reverse=True)]


def _changes_page(renderer: Renderer, opsets: Sequence[OpsetView]) -> Pages:
    rows: list[tuple[int, VersionView, str, str]] = []
    for each in reversed(opsets[1:]):
        rows += ((each.opset, view, "new", view.operator.summary) for view in each.new)
        rows += (
            (each.opset, view, str(view.change_class), view.entry.change or "Only texts changed.")
            for view in each.changed
        )
        rows += (
            (each.opset, view, "removed", (view.version.removal and view.version.removal.mapping) or "")
            for view in each.removed
        )
    return renderer.page(
        "changes.html",
        paths.CHANGES,
        "Changes between opsets",
        description="Operators of ONNX that changed between any two opsets.",
        trail=(ALL_OPSETS,),
        domain=opsets[0].domain,
        rows=rows,
        effects={
            "new": "new",
            **{str(each): label for each, label in CHANGE_LABELS.items()},
            "removed": "removed",
        },
        opsets=[each.opset for each in opsets],
    )


def release_page(renderer: Renderer, opsets: OpsetViews, registry: Registry) -> Pages:
    """Yield the page about releases of ONNX and of other products, such as onnxruntime."""
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
        description="The newest opsets and IR version that each release of ONNX and of runtimes supports.",
        data=data,
        products=products,
        variants=registry.releases.variants,
        opsets=existing,
    )


def runtime_pages(renderer: Renderer, runtimes: Runtimes, registry: Registry) -> Pages:
    """Yield the list of runtimes, and the page of each release, with their copies."""
    has_domain = registry.has_domain(DEFAULT_DOMAIN)
    newest = [each[-1] for each in runtimes.values()] if has_domain else []
    matrix = [(each, opset_shares(each, DEFAULT_DOMAIN, registry)) for each in newest]
    yield from renderer.page(
        "runtimes.html",
        paths.RUNTIMES,
        "Runtimes",
        description="Which opsets, operators and types each release of a runtime for ONNX models implements.",
        runtimes=runtimes,
        matrix=matrix,
        columns=range(1, len(matrix[0][1]) + 1) if matrix else (),
    )
    for each in chain.from_iterable(runtimes.values()):
        operators = list(operator_support(each, registry))
        shown = {name for row in operators for name in (str(row.version.id), _full_name(row.version))}
        yield from renderer.page(
            "runtime.html",
            paths.runtime_path(each),
            each.name,
            description=f"Operators, versions and types that {each.name} implements.",
            trail=(("Runtimes", paths.RUNTIMES),),
            data=to_plain_data(each),
            runtime=each,
            operators=operators,
            states=list(State),
            domains=list(dict.fromkeys(row.version.domain for row in operators)),
            types=sorted({kind for row in operators for kind in row.types.split()}),
            notes={name: note for name, note in each.notes.items() if name not in shown},
        )


def _full_name(version: OperatorVersion) -> str:
    return f"{version.domain}.{version.name}"


def document_pages(renderer: Renderer, documents: Sequence[DocumentPage]) -> Pages:
    """Yield the pages of the documentation, and their copies in Markdown."""
    tasks = list(pages_by_task(documents))
    ordered = [each for _, pages in tasks for each in pages]
    yield from renderer.page(
        "documents.html",
        paths.DOCUMENTS,
        "Documentation",
        description="How to convert, check and compare ONNX models with opshift, by task.",
        tasks=tasks,
    )
    for before, each, after in zip([None, *ordered], ordered, [*ordered[1:], None], strict=False):
        copy = f"{each.path.removesuffix('.html')}.md"
        trail = (("Documentation", paths.DOCUMENTS),)
        yield from renderer.page(
            "document.html",
            each.path,
            each.title,
            description=each.summary,
            trail=trail,
            copies=(("md", copy),),
            document=each,
            tasks=tasks,
            before=before,
            after=after,
        )
        yield copy, each.markdown


def missing_page(renderer: Renderer, url: str) -> Pages:
    """Yield the page that hosts show for addresses without a page; its links are absolute.

    `url` is the address of the site; if it is empty, links assume that the site is at the root of its host.
    """
    base = urlsplit(url).path.rstrip("/")
    return renderer.page(
        "missing.html",
        paths.MISSING,
        "Page not found",
        description="This page does not exist.",
        to=lambda target: f"{base}/{target}",
    )
