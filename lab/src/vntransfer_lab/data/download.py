"""One resumable HTTP download into a ``.part`` file.

pooch, which checks and places the file (`vntransfer_lab.data.fetch`), starts every download from
zero; this module gets the bytes for it and goes on where an earlier try, or an earlier process
that was killed, stopped.
"""

import json
import os
import shutil
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from vntransfer.errors import DataError
from vntransfer.progress import report
from vntransfer.storage.files import atomic_write

MAX_BYTES = 64 << 30
_PIECE = 1 << 15  # what a lost connection loses at most
_LATER = frozenset({408, 425, 429, 500, 502, 503, 504})


@dataclass(frozen=True)
class Version:
    """What a server says about the file, so that a part is continued only by its own rest."""

    url: str
    etag: str | None
    modified: str | None
    length: int | None

    @property
    def validator(self) -> str | None:
        """Value for ``If-Range``: a strong etag, else the date of the last change."""
        strong = self.etag is not None and not self.etag.startswith("W/")
        return self.etag if strong else self.modified


@dataclass(frozen=True)
class Patience:
    """How long to bear with a server.

    Parameters
    ----------
    timeout
        Seconds of silence after which a connection is given up.
    attempts
        Tries in a row without a single new byte.
    pause
        Seconds after the first of them; growing, at most 10.
    """

    timeout: float = 30.0
    attempts: int = 5
    pause: float = 1.0


PATIENCE = Patience()


class _PassingError(Exception):
    """The connection failed in a way that another try may mend."""


def note_path(part: Path) -> Path:
    """Return the file that says which version of what address a part belongs to."""
    return part.with_name(f"{part.name}.json")


def discard(part: Path) -> None:
    """Remove a part and its note."""
    part.unlink(missing_ok=True)
    note_path(part).unlink(missing_ok=True)


def download(
    url: str,
    part: Path,
    *,
    size: int | None = None,
    patience: Patience = PATIENCE,
) -> Version:
    """Download ``url`` into ``part``, continuing what is there if it is the same version.

    Progress is reported in bytes (`vntransfer.progress.reporting`).

    Parameters
    ----------
    url
        http or https.
    part
        Grows while downloading; complete and forced to disk on return. After an error it stays,
        for the next call to go on.
    size
        Expected bytes, if known.
    patience
        When to give up.

    Raises
    ------
    DataError
        When the address does not answer, answers with an error or never sends the whole file.
    """
    failures, most = 0, 0
    while True:
        try:
            return _attempt(url, part, size, patience.timeout)
        except _PassingError as error:
            here = part.stat().st_size if part.exists() else 0
            failures = 1 if here > most else failures + 1
            most = max(most, here)
            if failures >= patience.attempts:
                raise DataError(f"{url}: {error}; tried {failures} times, try later") from error
            time.sleep(min(patience.pause * failures, 10.0))


def _read_note(part: Path, url: str) -> Version | None:
    try:
        version = Version(**json.loads(note_path(part).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None
    return version if version.url == url else None


def _attempt(url: str, part: Path, size: int | None, timeout: float) -> Version:
    import requests
    import urllib3

    known, have = _read_note(part, url), part.stat().st_size if part.exists() else 0
    if known and have == known.length:
        return known  # an earlier process ended between the last byte and the check
    headers = {"Accept-Encoding": "identity", "User-Agent": "vntransfer"}
    if known and have and known.validator:
        headers |= {"Range": f"bytes={have}-", "If-Range": known.validator}
    try:
        with requests.get(url, headers=headers, stream=True, timeout=timeout) as answer:
            version, start = _judge(url, answer, known, have, part)
            if size is not None and version.length not in (None, size):
                discard(part)
                raise DataError(f"{url}: has {version.length} bytes, expected {size}")
            _make_room(part, version.length, start)
            if not start:
                part.unlink(missing_ok=True)  # before the note: it must not vouch for old bytes
            with atomic_write(note_path(part), "w") as note:
                json.dump(asdict(version), note)
            _receive(answer, part, start, version)
    except (requests.TooManyRedirects, requests.exceptions.InvalidURL) as error:
        raise DataError(f"{url}: {error}") from error
    except (requests.exceptions.InvalidSchema, requests.exceptions.MissingSchema) as error:
        raise DataError(f"{url}: not an http or https address ({error})") from error
    except (requests.RequestException, urllib3.exceptions.HTTPError) as error:
        if "Failed to resolve" in str(error):  # no other try will find the server
            raise DataError(f"{url}: the server cannot be found; are you offline?") from error
        raise _PassingError(f"the connection failed ({_short(error)})") from error
    got = part.stat().st_size
    if version.length is not None and got != version.length:
        raise _PassingError(f"the connection ended after {got} of {version.length} bytes")
    if size is not None and got != size:
        discard(part)
        raise DataError(f"{url}: sent {got} bytes, expected {size}")
    return version


def _judge(
    url: str, answer: Any, known: Version | None, have: int, part: Path
) -> tuple[Version, int]:
    """Version of the file and where the body of the answer starts, or an error."""
    code = answer.status_code
    if code in _LATER:
        raise _PassingError(f"the server answered {code} {answer.reason}")
    if code == 416:
        discard(part)
        raise _PassingError("the server has no such range")
    if code not in (200, 206):
        raise DataError(f"{url}: the server answered {code} {answer.reason}")
    if url.startswith("https:") and not answer.url.startswith("https:"):
        raise DataError(f"{url}: redirects to {answer.url}, which is not encrypted; refused")
    length = int(answer.headers["Content-Length"]) if _has_length(answer) else None
    if code == 206:
        first, total = _content_range(answer.headers.get("Content-Range", ""))
        if known is None or first != have or total != known.length:
            discard(part)
            raise _PassingError(
                f"the server sent another range ({first}, total {total}) than asked"
            )
        return known, have
    etag, modified = answer.headers.get("ETag"), answer.headers.get("Last-Modified")
    return Version(url, etag, modified, length), 0


def _has_length(answer: Any) -> bool:
    return str(answer.headers.get("Content-Length", "")).isdigit()


def _content_range(text: str) -> tuple[int | None, int | None]:
    """First byte and total of ``bytes first-last/total``.

    >>> _content_range("bytes 5-9/10"), _content_range("what")
    ((5, 10), (None, None))
    """
    span, _, total = text.removeprefix("bytes ").partition("/")
    first = span.partition("-")[0]
    return (
        int(first) if first.isdigit() else None,
        int(total) if total.isdigit() else None,
    )


def _make_room(part: Path, length: int | None, start: int) -> None:
    if length is not None and length > MAX_BYTES:
        raise DataError(f"{part.name}: the server offers {length} bytes, more than {MAX_BYTES}")
    free = shutil.disk_usage(part.parent).free
    if length is not None and length - start > free:
        raise DataError(
            f"{part.parent}: {length - start} bytes are needed and {free} are free; make room or "
            "set VNT_DATA to a folder on a larger disk"
        )


def _receive(answer: Any, part: Path, start: int, version: Version) -> None:
    with open(part, "ab") as file:
        done = start
        try:
            for piece in answer.raw.stream(_PIECE, decode_content=False):
                file.write(piece)
                done += len(piece)
                if done > MAX_BYTES:
                    raise DataError(f"{version.url}: sends more than {MAX_BYTES} bytes; stopped")
                report(part.name.removesuffix(".part"), done, version.length)
        finally:
            file.flush()
            os.fsync(file.fileno())


def _short(error: Exception) -> str:
    """Innermost reason, without the pool, port and path that urllib3 puts before it."""
    inner = error.args[0] if error.args and isinstance(error.args[0], Exception) else error
    text = str(getattr(inner, "reason", inner))
    return (text.partition("): ")[2] or text)[:200]
