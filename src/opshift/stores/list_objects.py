"""Listings of object stores."""

import sys
from collections.abc import Iterator

from opshift.model.errors import InvalidModel, UsageError
from opshift.model.remote import Store, StoreObject, raising_invalid_model
from opshift.stores.s3 import keys_below, s3_store


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
            if s3:
                yield from (name for name in keys_below(s3, found.path) if name.count("/") < depth)
            else:
                yield from _names(found.store, found.path, depth)
    except (InvalidModel, FileNotFoundError) as error:
        reason = getattr(error, "reason", "does not exist").replace("read", "listed")
        raise UsageError(reason, place=folder, remedy="check the URL and the credentials") from error


def _names(store: Store, path: str, depth: int) -> Iterator[str]:
    listed = {str(each["name"]).rstrip("/").rpartition("/")[2]: each for each in store.ls(path, detail=True)}
    for name, each in sorted(listed.items()):
        if each["type"] == "file":
            yield name
        # some stores list a folder in itself, for keys with an empty part
        elif depth > 1 and str(each["name"]).strip("/") != path.strip("/"):
            for relative in _names(store, str(each["name"]), depth - 1):
                yield f"{name}/{relative}"
