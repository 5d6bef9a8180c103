"""Outputs of a batch: files below a folder, or objects in a store."""

from __future__ import annotations

import os
from collections.abc import Container
from pathlib import Path

from opshift.batch.ledger import LEDGER_FOLDER, Ledger
from opshift.model.atomic_files import remove_abandoned_files
from opshift.model.errors import UsageError
from opshift.model.locations import is_url
from opshift.stores.locations import exists, join


def output_location(out: str, relative: str) -> str:
    """Return the output of a model; `relative` has slashes, and may be any key of an object store.

    Raises:
        UsageError: the name has parts that paths cannot have, or the output would be outside of the folder,
            also because of a symbolic link.
        CannotWrite: the path cannot be resolved, for example because a name is too long.
    """
    if not {"", ".", ".."}.isdisjoint(relative.split("/")) or "\0" in relative:
        reason = "has an empty part, a part of dots or a null character"
        raise UsageError(reason, place=relative, remedy="correct the name, or convert it alone")
    output = join(out, relative)
    if not is_url(output):
        require_no_link(output)
    return output


def require_no_link(path: str) -> None:
    """Raise UsageError for a symbolic link in an output folder: its target would be replaced."""
    if os.path.islink(path):
        raise UsageError("is a symbolic link", place=path, remedy="remove the link")


def foreign_objects(out: str, ledger: Ledger) -> Container[str]:
    """Return the objects below a URL that the ledger does not own.

    A listing has a thousand objects, and spares a request for each of them.
    """
    if not is_url(out) or not exists(out):
        return ()
    from opshift.stores.list_objects import objects_below  # few outputs have a URL

    names = (name for name in objects_below(out) if not name.startswith(f"{LEDGER_FOLDER}/"))
    locations = (join(out, name) for name in names)
    owned = ((location, ledger.entry(location)) for location in locations)
    return {location for location, entry in owned if entry is None or not entry.owns_output}


def remove_unfinished(output: str) -> None:
    """Remove what killed processes left of an output, which no process may write at the moment."""
    if is_url(output):
        from opshift.stores.uploads import remove_unfinished as abort_uploads

        abort_uploads(output)
    else:
        remove_abandoned_files(Path(output).parent)
