"""List the objects below a folder of an object store."""

import sys
from collections import Counter
from collections.abc import Iterator

from opshift.model.errors import InvalidModel, UsageError
from opshift.model.remote import Store, StoreObject, raising_invalid_model
from opshift.stores.s3 import keys_below, s3_store


def objects_below(folder: str, depth: int = sys.maxsize) -> Iterator[str]:
    """Yield the names of the objects below a folder, relative to it, in the order of the names.

    `depth` is the maximum number of parts of a name. S3 is listed page by page during the iteration.

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
                yield from _object_names(found.store, found.path, depth)
    except (InvalidModel, FileNotFoundError) as error:
        reason = getattr(error, "reason", "does not exist").replace("read", "listed")
        raise UsageError(reason, place=folder, remedy="check the URL and the credentials") from error


def _object_names(store: Store, path: str, depth: int) -> Iterator[str]:
    listed = [(_last_part(str(each["name"])), each) for each in store.ls(path, detail=True)]
    counts = Counter(name for name, _ in listed)
    is_in_itself = any(str(each["name"]).strip("/") == path.strip("/") for _, each in listed)
    # Some stores list a folder in itself if a key has an empty part, or list an object and a folder with the
    # same name. For such stores, list all keys at once instead of one folder after the other.
    if depth > 1 and (is_in_itself or max(counts.values(), default=0) > 1):
        yield from (name for name in _keys(store, path) if name.count("/") < depth)
        return
    for name, each in sorted(listed, key=lambda each: each[0]):
        if each["type"] == "file":
            yield name
        elif depth > 1:
            for relative in _object_names(store, str(each["name"]), depth - 1):
                yield f"{name}/{relative}"


def _last_part(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2]


def _keys(store: Store, path: str) -> Iterator[str]:
    """Yield all keys below a folder, sorted and relative to it."""
    prefix = f"{path.strip('/')}/"
    for key in sorted(store.find(path)):
        if not key.endswith("/"):  # skip objects whose keys end in a slash: they represent folders
            yield key.lstrip("/").removeprefix(prefix)
