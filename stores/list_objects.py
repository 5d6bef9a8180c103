"""Listings of object stores."""

import sys
from collections.abc import Iterator
from typing import Protocol, cast

from opshift.model.errors import InvalidModel, UsageError
from opshift.model.remote_files import Store, StoreObject, raising_invalid_model


class S3Store(Store, Protocol):
    """Methods of s3fs."""

    def split_path(self, path: str) -> tuple[str, str, str | None]:
        """Return the bucket, the key, and the version of an object."""
        ...

    def call_s3(self, method: str, **parameters: object) -> dict[str, object]:
        """Send a request."""
        ...

    def invalidate_cache(self, path: str) -> None:
        """Discard what is known about an object."""


def s3_store(store: Store) -> S3Store | None:
    """Return a store if it is s3fs, which can send any request of S3."""
    return cast("S3Store", store) if "s3" in store.protocol else None


def objects_below(folder: str, depth: int = sys.maxsize) -> Iterator[str]:
    """Yield the names of the objects in a folder, and in its folders up to a depth, relative to it.

    The order is that of the names. Pages of S3 are requested as the iteration proceeds.

    Raises:
        UsageError: the folder does not exist, or cannot be listed.
    """
    found = StoreObject.at(folder)
    s3 = s3_store(found.store)
    try:
        with raising_invalid_model(folder):
            yield from _s3_keys(s3, found.path, depth) if s3 else _names(found.store, found.path, depth)
    except (InvalidModel, FileNotFoundError) as error:
        reason = getattr(error, "reason", "does not exist").replace("read", "listed")
        raise UsageError(reason, place=folder, remedy="check the URL and the credentials") from error


def _s3_keys(store: S3Store, path: str, depth: int) -> Iterator[str]:
    # one request for 1000 objects, whatever their folders; keys may have empty parts
    bucket, key, _ = store.split_path(path)
    prefix = f"{key.rstrip('/')}/" if key else ""
    request: dict[str, object] = {"Bucket": bucket, "Prefix": prefix}
    while True:
        page = store.call_s3("list_objects_v2", **request)
        for each in cast("list[dict[str, str]]", page.get("Contents", ())):
            name = each["Key"].removeprefix(prefix)
            if name and not name.endswith("/") and name.count("/") < depth:
                yield name
        if not page.get("IsTruncated"):
            return
        request["ContinuationToken"] = page["NextContinuationToken"]


def _names(store: Store, path: str, depth: int) -> Iterator[str]:
    listed = {str(each["name"]).rstrip("/").rpartition("/")[2]: each for each in store.ls(path, detail=True)}
    for name, each in sorted(listed.items()):
        if each["type"] == "file":
            yield name
        elif depth > 1:
            for relative in _names(store, str(each["name"]), depth - 1):
                yield f"{name}/{relative}"
