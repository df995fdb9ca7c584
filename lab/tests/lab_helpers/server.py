"""A small HTTP server whose files misbehave on request."""

import hashlib
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Server:
    """Serves ``body`` at ``/MODE/name``; ``requests`` and ``ranges`` record what was asked."""

    def __init__(self, body: bytes) -> None:
        self.body, self.requests, self.ranges = body, Counter[str](), list[str]()
        self.etag, self.delay = f'"{hashlib.md5(body).hexdigest()}"', 0.0
        self.release = threading.Event()

    def url(self, mode: str, name: str = "data.bin") -> str:
        return f"http://127.0.0.1:{self.port}/{mode}/{name}"

    @contextmanager
    def run(self) -> Iterator["Server"]:
        owner = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def end_headers(self) -> None:
                self.send_header("Connection", "close")
                super().end_headers()

            def log_message(self, *args: object) -> None:
                pass

            def do_GET(self) -> None:
                owner.answer(self, self.path.split("/")[1])

        class Quiet(ThreadingHTTPServer):
            def handle_error(self, *args: object) -> None:
                pass  # clients hang up on purpose

        self._http = Quiet(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self.port = self._http.server_address[1]
        thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self.release.set()
            self._http.shutdown()
            self._http.server_close()

    def answer(self, to: BaseHTTPRequestHandler, mode: str) -> None:
        self.requests[mode] += 1
        asked = to.headers.get("Range")
        self.ranges += [asked] if asked else []
        to.close_connection = True
        if mode in ("redirect", "loop"):
            to.send_response(302)
            to.send_header("Location", self.url("good" if mode == "redirect" else "loop"))
            to.send_header("Content-Length", "0")
            to.end_headers()
        elif mode == "missing":
            to.send_error(404)
        elif mode == "busy" and self.requests[mode] < 3:
            to.send_error(503)
        else:
            self.send(to, mode, asked)

    def send(self, to: BaseHTTPRequestHandler, mode: str, asked: str | None) -> None:
        body = self.body
        if mode == "corrupt":
            body = body[: len(body) // 2] + b"?" + body[len(body) // 2 + 1 :]
        elif mode == "page":
            body = b"<!DOCTYPE html><html>moved</html>"
        start = 0
        if asked and mode != "norange" and to.headers.get("If-Range") == self.etag:
            start = int(asked.removeprefix("bytes=").rstrip("-"))
        total = len(body)
        if start >= total:
            to.send_response(416)
            to.send_header("Content-Length", "0")
            to.end_headers()
            return
        to.send_response(206 if start else 200)
        if start:
            begin = start + 7 if mode == "wrongrange" else start
            to.send_header("Content-Range", f"bytes {begin}-{total - 1}/{total}")
        length = {"long": total + 500, "short": total - 500}.get(mode, total) - start
        if mode != "nolength":
            to.send_header("Content-Length", str(length))
        if mode != "noetag":
            to.send_header("ETag", self.etag)
        to.end_headers()
        rest = body[start:]
        first = self.requests[mode] == 1
        if mode == "cut" or (mode in ("cutonce", "norange", "wrongrange", "noetag") and first):
            rest = rest[: len(rest) // 2]
        for at in range(0, len(rest), 4096):
            to.wfile.write(rest[at : at + 4096])
            time.sleep(self.delay)
            if mode == "stall" or (mode == "stallonce" and first and at >= 100_000):
                to.wfile.flush()
                self.release.wait(20)
                return
