"""A file of a data set with the hashes that are known for it."""

from vntransfer_lab.data.entry import Compact, RemoteFile
from vntransfer_lab.data.registry.hashes import CONTENT_MD5, MD5, SHA256


def official_file(
    folder: str,
    name: str,
    *urls: str,
    also: tuple[str, ...] = (),
    compact: str | None = None,
    partial: bool = False,
    size: int | None = None,
    optional: bool = False,
) -> RemoteFile:
    """One file with the hashes that are known for it and for its compact form."""
    key, short = f"{folder}/{name}", compact or name
    known = SHA256.get(f"{folder}/{short}")
    return RemoteFile(
        name=name,
        urls=urls,
        folder=folder,
        size=size,
        md5=MD5.get(key),
        content_md5=CONTENT_MD5.get(key),
        also=also,
        compact=(Compact(short, known, partial),) if known else (),
        optional=optional,
    )
