"""A small HTTP server whose files misbehave on request."""

import ssl
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


class Server:
    """Serves ``body`` at ``/MODE/name``; ``requests`` counts what was asked.

    With a certificate (a PEM file with its key) it speaks https. ``elsewhere`` is where the mode
    "redirect" leads to.
    """

    def __init__(self, body: bytes, certificate: Path | None = None) -> None:
        self.body, self.requests, self.delay = body, Counter[str](), 0.0
        self.certificate, self.elsewhere = certificate, ""
        self.release = threading.Event()

    def url(self, mode: str, name: str = "data.bin") -> str:
        scheme = "https" if self.certificate else "http"
        return f"{scheme}://localhost:{self.port}/{mode}/{name}"

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

        self._http = Quiet(("localhost", 0), Handler)
        self._http.daemon_threads = True
        if self.certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(self.certificate)
            self._http.socket = context.wrap_socket(self._http.socket, server_side=True)
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
        to.close_connection = True
        if mode in ("redirect", "loop"):
            to.send_response(302)
            there = self.elsewhere or self.url("good")
            to.send_header("Location", there if mode == "redirect" else self.url("loop"))
            to.send_header("Content-Length", "0")
            to.end_headers()
        elif mode == "missing":
            to.send_error(404)
        elif mode == "busy" and self.requests[mode] < 2:
            to.send_error(503)
        else:
            self.send(to, mode)

    def send(self, to: BaseHTTPRequestHandler, mode: str) -> None:
        body = self.body
        if mode == "corrupt":
            body = body[: len(body) // 2] + b"?" + body[len(body) // 2 + 1 :]
        elif mode == "page":
            body = b"<!DOCTYPE html><html>moved</html>"
        to.send_response(200)
        if mode != "nolength":
            wrong = {"long": 500, "short": -500}.get(mode, 0)
            to.send_header("Content-Length", str(len(body) + wrong))
        to.end_headers()
        if mode == "cut" or (mode == "cutonce" and self.requests[mode] == 1):
            body = body[: len(body) // 2]
        step = 1 if mode == "drip" else 4096
        for at in range(0, len(body), step):
            to.wfile.write(body[at : at + step])
            time.sleep(0.05 if mode == "drip" else self.delay)
            if mode == "stall":
                to.wfile.flush()
                self.release.wait(20)
                return
