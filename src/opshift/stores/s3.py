"""S3 requests for which fsspec has no function."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Protocol, cast

from opshift.model.process_state import signals_deferred
from opshift.model.remote import COPY_SIZE, RemoteFile, Store
from opshift.model.tensor_pieces import Range

MIN_PART = 5 << 20
"""Minimum size in bytes of a part of an upload, except the last part; a limit of S3."""

MAX_PARTS = 10_000
"""Maximum number of parts of an upload; a limit of S3."""

MAX_COPIED_PART = 1 << 28
"""Maximum size in bytes of a part that the store copies; if copying fails, the part is read into memory."""


class S3Store(Store, Protocol):
    """Methods of s3fs that opshift calls."""

    def split_path(self, path: str) -> tuple[str, str, str | None]:
        """Return the bucket, the key, and the version of an object."""
        ...

    def call_s3(self, method: str, **parameters: object) -> dict[str, object]:
        """Send a request, such as `list_objects_v2`, and return the response."""
        ...

    def metadata(self, path: str) -> Mapping[str, str]:
        """Return the user-defined metadata of an object."""
        ...

    def invalidate_cache(self, path: str) -> None:
        """Discard the cached listings that contain an object."""


def s3_store(store: Store) -> S3Store | None:
    """Return the store if it is s3fs, which can send any S3 request; else `None`."""
    return cast("S3Store", store) if "s3" in store.protocol else None


def keys_below(store: S3Store, path: str) -> Iterator[str]:
    """Yield the keys below a bucket or folder, relative to it; pages are requested during the iteration.

    Subfolders cost no extra requests, and keys may have empty parts.
    """
    bucket, key, _ = store.split_path(path)
    prefix = f"{key.rstrip('/')}/" if key else ""
    request: dict[str, object] = {"Bucket": bucket, "Prefix": prefix}
    while True:
        page = store.call_s3("list_objects_v2", **request)
        for each in cast("list[dict[str, str]]", page.get("Contents", ())):
            # skip objects whose keys end in a slash: they represent folders
            if not each["Key"].endswith("/"):
                yield each["Key"].removeprefix(prefix)
        if not page.get("IsTruncated"):
            return
        request["ContinuationToken"] = page["NextContinuationToken"]


def abort_uploads(store: S3Store, path: str) -> None:
    """Abort all unfinished multipart uploads of an object."""
    bucket, key, _ = store.split_path(path)
    found = store.call_s3("list_multipart_uploads", Bucket=bucket, Prefix=key)
    for each in cast("list[dict[str, str]]", found.get("Uploads", ())):
        if each["Key"] == key:
            store.call_s3("abort_multipart_upload", Bucket=bucket, Key=key, UploadId=each["UploadId"])


class MultipartUpload:
    """Upload of an object in parts; the store can copy parts from its own objects."""

    def __init__(
        self, store: S3Store, path: str, size: int, metadata: Mapping[str, str], *, copies: bool
    ) -> None:
        self._store, self._path = store, path
        self._parts: list[dict[str, object]] = []
        self.least = max(MIN_PART if copies else COPY_SIZE, size // MAX_PARTS + 1)
        self.most = max(self.least, MAX_COPIED_PART if copies else 0)
        self._can_copy = copies
        bucket, key, _ = store.split_path(path)
        self._upload = {"Bucket": bucket, "Key": key}
        with suppress(Exception):  # the store may forbid listing uploads
            abort_uploads(store, path)  # left by processes that were killed
        with signals_deferred():  # a signal must not lose the id, which aborting the upload needs
            started = store.call_s3("create_multipart_upload", **self._upload, Metadata=metadata)
            self._upload["UploadId"] = str(started["UploadId"])

    def send(self, content: bytes) -> None:
        """Send the next part."""
        self._record_part(self._send_request("upload_part", Body=content))

    def copy(self, source: RemoteFile, part: Range) -> None:
        """Let the store copy the next part from another object, if that object is unchanged.

        Raises:
            Exception: the store cannot copy the part; the class of the error depends on the reason.
        """
        if not self._can_copy:
            raise OSError("the store did not copy an earlier part")
        bucket, key, _ = self._store.split_path(source.source.path)
        try:
            copied = self._send_request(
                "upload_part_copy",
                CopySource={"Bucket": bucket, "Key": key},
                CopySourceRange=f"bytes={part.start}-{part.end - 1}",
                CopySourceIfMatch=source.info["ETag"],
            )
        except Exception:
            self._can_copy = False
            raise
        source.requests += 1
        self._record_part(cast("dict[str, object]", copied["CopyPartResult"]))

    def complete(self) -> None:
        """Finish the upload; only then does the object appear in the store."""
        parts = {"Parts": self._parts}
        with signals_deferred():  # a signal would not stop the request, but only the wait for its end
            self._store.call_s3("complete_multipart_upload", **self._upload, MultipartUpload=parts)
        self._store.invalidate_cache(self._path)

    def abort(self) -> None:
        """Discard all parts that were sent."""
        self._store.call_s3("abort_multipart_upload", **self._upload)

    def _send_request(self, method: str, **parameters: object) -> dict[str, object]:
        number = len(self._parts) + 1
        return self._store.call_s3(method, **self._upload, PartNumber=number, **parameters)

    def _record_part(self, answer: Mapping[str, object]) -> None:
        self._parts.append({"ETag": answer["ETag"], "PartNumber": len(self._parts) + 1})
