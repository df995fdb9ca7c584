"""Downloads of data sets by pooch: mirrors, one process at a time, checked before they appear."""

import os
import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin

from vntransfer.errors import DataError
from vntransfer.progress import Progress
from vntransfer_lab.data.archives import check_whole
from vntransfer_lab.data.files import Found, check, data_home, locate
from vntransfer_lab.data.registry import Entry, RemoteFile

if TYPE_CHECKING:
    import requests

_PIECE = 1 << 16


@dataclass(frozen=True)
class Patience:
    """Limits for slow or oversized downloads."""

    silence: float = 30.0  # seconds without a byte after which a connection is given up
    total: float = 6 * 3600.0  # seconds for one address, retries included
    retries: int = 3  # further attempts after a lost connection or a wrong hash
    most: int = 64 << 30  # bytes of a file whose size is not known


PATIENCE = Patience()


class _RefusedError(Exception):
    """An answer that another attempt would not improve: pooch retries ValueError, so not one."""


class Downloader:
    """Downloader for pooch of one file of ``size`` bytes; limits redirects, size and total time."""

    def __init__(self, size: int | None, patience: Patience, progress: Progress | None) -> None:
        self.size, self.patience, self.progress = size, patience, progress
        self.until = time.monotonic() + patience.total

    def __call__(self, url: str, output: str, pooch: Any, check_only: bool = False) -> None:
        """Write the content of an address into the file that pooch names."""
        import requests
        from urllib3.exceptions import HTTPError

        try:
            with requests.get(
                url,
                headers={"Accept-Encoding": "identity", "User-Agent": "vntransfer"},
                stream=True,
                timeout=self.silence_left(),
                hooks={"response": _stay_encrypted},
            ) as answer:
                self._receive(answer, output)
        except HTTPError as error:  # of the body, which requests leaves to urllib3
            raise requests.ConnectionError(f"the connection failed ({error})") from error
        except requests.ConnectionError as error:
            if "Failed to resolve" in str(error):  # no other attempt will find the server
                raise _RefusedError("the server cannot be found; are you offline?") from error
            raise
        except (requests.TooManyRedirects, requests.exceptions.InvalidURL) as error:
            raise _RefusedError(str(error)) from error
        except (requests.exceptions.InvalidSchema, requests.exceptions.MissingSchema) as error:
            raise _RefusedError(f"not an http or https address ({error})") from error

    def silence_left(self) -> float:
        """Seconds to wait for the next byte; refuses to wait where the total time is over."""
        left = self.until - time.monotonic()
        if left <= 0:
            raise _RefusedError(
                f"took longer than {self.patience.total:g} seconds in total; stopped"
            )
        return min(self.patience.silence, left)

    def _receive(self, answer: "requests.Response", output: str) -> None:
        if 400 <= answer.status_code < 500 and answer.status_code not in (408, 425, 429):
            raise _RefusedError(f"the server answered {answer.status_code} {answer.reason}")
        answer.raise_for_status()
        length = answer.headers.get("Content-Length", "")
        declared = int(length) if length.isdigit() else None
        if self.size is not None and declared not in (None, self.size):
            raise _RefusedError(f"has {declared} bytes, expected {self.size}")
        most = self.patience.most if self.size is None else self.size
        done, name = 0, Path(answer.request.url or output).name
        with open(output, "wb") as file:
            # read1: what has arrived, so that a server that drips cannot outlast the total time
            while piece := answer.raw.read1(_PIECE, decode_content=False):
                done += len(piece)
                if done > most:
                    raise _RefusedError(f"sends more than {most} bytes; stopped")
                file.write(piece)
                self.silence_left()
                if self.progress is not None:
                    self.progress(name, done, declared or self.size)
            os.fsync(file.fileno())
        if self.size is not None and done != self.size:
            raise _RefusedError(f"sent {done} bytes, expected {self.size}")


def _stay_encrypted(answer: "requests.Response", **_: object) -> None:
    """Refuse to follow a redirect from an encrypted address to one that is not."""
    target = urljoin(answer.url, answer.headers.get("Location", answer.url))
    if answer.url.startswith("https:") and not target.startswith("https:"):
        raise _RefusedError(f"redirects to {target}, which is not encrypted; refused")


def fetch(
    entry: Entry,
    folder: str | Path | None = None,
    *,
    force: bool = False,
    progress: Progress | None = None,
    patience: Patience = PATIENCE,
) -> list[Path]:
    """Download the files of a data set that are absent, into ``folder`` or `data_home`.

    With ``force`` also those that are present, compact or damaged. ``progress`` is called with the
    name of a file, bytes done and total. If no address gives a good file, nothing bad is
    left in the folder.
    """
    root = data_home(folder)
    paths = []
    try:
        root.mkdir(parents=True, exist_ok=True)
        present = {item.remote: item for item in locate(entry, root)}
        for remote in entry.files:
            found = present.get(remote)
            if remote.urls and (force or found is None or found.form == "partial"):
                paths.append(_fetch_file(remote, root, force, progress, patience))
            elif found or not remote.optional:
                paths.append(_present(entry, remote, found, root))
    except OSError as error:
        raise DataError(
            f"{root}: cannot be written ({error}); free some space, or choose another folder with "
            "--to or VNT_DATA"
        ) from error
    return paths


def _present(entry: Entry, remote: RemoteFile, found: Found | None, root: Path) -> Path:
    """Path of an existing file, if it is usable."""
    if found is None:
        raise DataError(
            f"{entry.name}: {remote.name} has no public address ({entry.notes}); put it into "
            f"{root / remote.folder}"
        )
    if check(found) == "differs":
        raise DataError(
            f"{found.path}: has an unknown hash; to replace it run "
            f"`vnt data fetch {entry.name} --force`"
        )
    return found.path


def _fetch_file(
    remote: RemoteFile, root: Path, force: bool, progress: Progress | None, patience: Patience
) -> Path:
    """Download one file below ``root``, from the first address that gives a good one."""
    from filelock import FileLock

    place = root / remote.folder / remote.name
    place.parent.mkdir(parents=True, exist_ok=True)
    staging, problems = place.with_name(f".{place.name}.download"), list[str]()
    with FileLock(place.with_name(f".{place.name}.lock")):
        if place.exists() and not force:
            return place  # another process was faster
        for url in remote.urls:
            try:
                downloader = Downloader(remote.size, patience, progress)
                os.replace(_retrieve(url, remote, staging, downloader), place)
                return place
            except DataError as error:
                problems.append(str(error))
            finally:
                shutil.rmtree(staging, ignore_errors=True)
    raise DataError(
        f"{remote.name}: no address provided an intact file: {'; '.join(problems)}. "
        f"Download it yourself and put it into {place.parent}"
    )


def _retrieve(url: str, remote: RemoteFile, staging: Path, downloader: Downloader) -> Path:
    """Let pooch download a file into an empty folder and check it."""
    import pooch
    from requests import RequestException

    shutil.rmtree(staging, ignore_errors=True)  # what a killed process left
    pooch.get_logger().setLevel("WARNING")
    store = pooch.create(
        staging,
        base_url="",
        registry={remote.name: next(iter(remote.hashes), None)},
        urls={remote.name: url},
        retry_if_failed=downloader.patience.retries,
    )
    try:
        path = Path(store.fetch(remote.name, downloader=downloader))
        if not remote.hashes:
            check_whole(path)
    except (RequestException, ValueError, _RefusedError) as error:
        raise DataError(f"{url}: {error}".replace(f"{staging}{os.sep}", "")) from error
    return path
