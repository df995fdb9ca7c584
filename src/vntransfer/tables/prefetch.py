"""Reading the next piece of a file while the last one is computed with."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from queue import Full, Queue
from threading import Event, Thread
from typing import TypeVar

Piece = TypeVar("Piece")
_PATIENCE = 0.05


class _End:
    """The last thing in the queue: what ended the reading, None if all has been read."""

    def __init__(self, error: BaseException | None) -> None:
        self.error = error


@contextmanager
def ahead(pieces: Iterable[Piece], depth: int = 2) -> Iterator[Iterator[Piece]]:
    """Give pieces in their order, while a thread gets so many of the next ones.

    An error of the reading is raised where the piece would have come. However the block ends, the
    thread has ended after it, so that the file can be closed.

    Examples
    --------
    >>> with ahead(range(4)) as pieces:
    ...     list(pieces)
    [0, 1, 2, 3]
    """
    queue: Queue[Piece | _End] = Queue(depth)
    stop = Event()

    def put(piece: Piece | _End) -> None:
        while not stop.is_set():
            try:
                queue.put(piece, timeout=_PATIENCE)
            except Full:
                continue
            return

    def read() -> None:
        error: BaseException | None = None
        try:
            for piece in pieces:
                put(piece)
                if stop.is_set():
                    break
        except BaseException as raised:  # handed to the reader of the queue, whatever it is
            error = raised
        put(_End(error))

    def given() -> Iterator[Piece]:
        while not isinstance(piece := queue.get(), _End):
            yield piece
        if piece.error is not None:
            raise piece.error

    reader = Thread(target=read, daemon=True)
    reader.start()
    try:
        yield given()
    finally:
        stop.set()
        reader.join()
