"""Functions for locations of models, which are paths of local files or URLs."""

import os
from collections.abc import Mapping
from pathlib import Path
from posixpath import isabs, normpath

from opshift.model.atomic_files import destination_below
from opshift.model.errors import UsageError
from opshift.model.locations import is_url


def join(folder: str, relative: str) -> str:
    """Return the location of a file below a folder; `relative` has slashes.

    Raises:
        UsageError: the path leads out of the folder, by its parts or by a symbolic link.
    """
    path = normpath(relative)
    if isabs(path) or path.partition("/")[0] == ".." or "\0" in path:
        reason = f"is outside of the folder {folder}"
        raise UsageError(reason, place=relative, remedy="correct the name")
    return f"{folder.rstrip('/')}/{path}" if is_url(folder) else str(destination_below(Path(folder), path))


def folder_location(location: str) -> str:
    """Return the folder of a file: the location without its last part."""
    return location.rpartition("/")[0] if is_url(location) else str(Path(location).parent)


def exists(location: str) -> bool:
    """Return whether a file, folder or symbolic link exists.

    Raises:
        InvalidModel: the store cannot be read.
        UsageError: the URL is not usable.
    """
    return object_state(location) is not None if is_url(location) else os.path.lexists(location)


def object_state(location: str) -> str | None:
    """Return size and ETag, version or time of an object as text; `None` if the object does not exist.

    Raises:
        InvalidModel: the store cannot be read.
        UsageError: the URL is not usable.
    """
    from opshift.model.remote import StoreObject, identity_of  # imported here: few locations are URLs

    info = StoreObject.at(location).info()
    return None if info is None else identity_of(info)


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
