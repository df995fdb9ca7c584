"""Read the files inside an archive, or inside the folder it was unpacked to, without unpacking."""

from collections.abc import Callable, Iterator
from pathlib import Path

from vntransfer.data.archives import members


def read_members(path: Path, wanted: Callable[[str], bool]) -> Iterator[tuple[str, bytes]]:
    """Yield (name, content) of the wanted regular files of a folder, a zip or a tar.

    Names use ``/`` and are relative to the folder or as in the archive; links in a folder are
    skipped, in an archive they are refused (`vntransfer.data.archives.members`).

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> for name in ("a.txt", "b.txt", "c.png"):
    ...     _ = (folder / name).write_text(name)
    >>> list(read_members(folder, lambda name: name.endswith(".txt")))
    [('a.txt', b'a.txt'), ('b.txt', b'b.txt')]
    """
    if not path.is_dir():
        for name, stream in members(path):
            if wanted(name):
                yield name, stream.read()
        return
    for file in sorted(path.rglob("*")):
        name = file.relative_to(path).as_posix()
        if wanted(name) and file.is_file() and not file.is_symlink():
            yield name, file.read_bytes()
