"""Cache of routers, which all models share."""

from functools import lru_cache

from opshift.adapters.core.equivalents import Unwanted
from opshift.registry.registry import Registry
from opshift.rewriting.routes import LazyAdapterTable, Router


@lru_cache(maxsize=64)
def router_for(
    registry: Registry, targets: frozenset[tuple[str, int]], without: frozenset[Unwanted]
) -> Router:
    """Return the shared router to target opsets; its results contain nothing in `without`, see `Unwanted`."""
    if without:
        # imported here: few conversions avoid operators or types
        from opshift.rewriting.expanding_router import ExpandingRouter

        return ExpandingRouter(registry, LazyAdapterTable(), dict(targets), without)
    return Router(registry, LazyAdapterTable(), dict(targets))
