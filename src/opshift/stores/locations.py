"""Functions for locations of models, which are paths of local files or URLs."""

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from posixpath import isabs, normpath

from opshift.model.atomic_files import destination_below
from opshift.model.errors import UsageError
from opshift.model.locations import is_url, is_web_url


def join(folder: str, relative: str) -> str:
    """Return the location of a file below a folder; `relative` is its path with slashes.

    Raises:
        UsageError: the path has a null character, or leads out of the folder, by its parts or by a symbolic
            link.
        CannotWrite: the path cannot be resolved.
    """
    path = normpath(relative)
    if "\0" in path:
        raise UsageError("contains a null character", place=relative, remedy="correct the name")
    if isabs(path) or path.partition("/")[0] == "..":
        reason = f"is outside of the folder {folder}"
        raise UsageError(reason, place=relative, remedy="correct the name")
    if not is_url(folder):
        return str(destination_below(Path(folder), path))
    if is_web_url(folder):
        from urllib.parse import quote  # imported here: few locations are URLs

        path = quote(path)  # `?` and `#` would end the path, and `%` would begin an encoded character
    return url_below(folder, path)


def url_below(folder: str, relative: str) -> str:
    """Return the URL of an object below a folder, which may be the root of a store, such as `memory://`."""
    scheme, _, rest = folder.partition("://")
    return f"{scheme}://{rest.rstrip('/')}/{relative}" if rest else f"{scheme}://{relative}"


def folder_prefix(folder: str) -> str:
    """Return the start of the locations of all files below a folder: the folder with a slash at its end."""
    return url_below(folder, "") if is_url(folder) else f"{folder.rstrip('/')}/"


def address_of(location: str) -> str:
    """Return a path or URL without the query (web servers) or the object version (S3).

    In other stores, keys may contain `?` and `#`.
    """
    if is_web_url(location):
        return re.split("[?#]", location, maxsplit=1)[0]
    is_s3 = location.lower().startswith(("s3://", "s3a://"))
    return location.partition("?versionId=")[0] if is_s3 else location


def folder_location(location: str) -> str:
    """Return the folder of a file: the location without its last part and, for a URL, without its query."""
    if not is_url(location):
        return str(Path(location).parent)
    scheme, _, path = address_of(location).partition("://")
    folder, slash, _ = path.rpartition("/")
    return f"{scheme}://{folder or slash}"


def with_data(model: str, data: Iterable[str]) -> list[str]:
    """Return the locations of a model and its data files; the names in `data` are relative to its folder."""
    if is_url(model):
        return [model, *(join(folder_location(model), each) for each in data)]
    return [model, *(os.path.join(os.path.dirname(model), each) for each in data)]


def exists(location: str) -> bool:
    """Return whether a file, folder, symbolic link or object exists.

    Raises:
        InvalidModel: the store cannot be read.
        UsageError: the URL is not usable.
    """
    if not is_url(location):
        return os.path.lexists(location)
    from opshift.model.remote import StoreObject  # imported here: few locations are URLs

    return StoreObject.at(location).info() is not None


def object_identity(location: str) -> str | None:
    """Return size and ETag, version or time of an object as text; `None` if the store sends none of these.

    Also return `None` if the object does not exist.

    Raises:
        InvalidModel: the store cannot be read.
        UsageError: the URL is not usable.
    """
    # imported here: few locations are URLs
    from opshift.model.remote import StoreObject, has_identity, identity_of

    info = StoreObject.at(location).info()
    return identity_of(info) if info and has_identity(info) else None


def object_state(location: str) -> str | None:
    """Return size and ETag, version or time of an object as text; `None` if the object does not exist.

    If the store sends none of these, read the content, and return its digest.

    Raises:
        InvalidModel: the store cannot be read.
        UsageError: the URL is not usable.
    """
    # imported here: few locations are URLs
    from opshift.model.remote import StoreObject, has_identity, identity_of

    info = StoreObject.at(location).info()
    if info is None:
        return None
    return identity_of(info) if has_identity(info) else _content_digest(location)


def _content_digest(location: str) -> str:
    from hashlib import sha256  # imported here: few stores describe an object only by its size

    from opshift.stores.source_file import open_source  # imported here for the same reason

    digest = sha256()
    with open_source(location) as source:
        for start in range(0, source.size, source.copy_size):
            digest.update(source.read(start, min(start + source.copy_size, source.size)))
    return f"sha256:{digest.hexdigest()}"


def metadata_of(location: str) -> Mapping[str, str] | None:
    """Return the user-defined metadata of an object; `None` without metadata, and for stores other than S3.

    The object must exist.

    Raises:
        InvalidModel: the object cannot be read.
        UsageError: the URL is not usable.
    """
    from opshift.model.remote import StoreObject, raising_invalid_model
    from opshift.stores.s3 import s3_store

    found = StoreObject.at(location)
    store = s3_store(found.store)
    with raising_invalid_model(location):
        return (store.metadata(found.path) or None) if store else None
