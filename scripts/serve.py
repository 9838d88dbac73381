"""Serve the built book on the first free localhost port and open the browser."""

from __future__ import annotations

import argparse
import contextlib
import errno
import os
import signal
import socket
import sys
import webbrowser
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

SITE = Path(__file__).resolve().parent.parent / "_build" / "html"
FIRST_PORT = 8000
LAST_PORT = 8999
# What README.md advises any host to send. A page's own policy names its scripts by hash; this one
# holds for every page and, unlike a page's, for the worker that runs Python.
HEADERS = {
    "Content-Security-Policy": "default-src 'self'; script-src 'self' 'unsafe-inline' "
    "'wasm-unsafe-eval'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "frame-src 'none'; object-src 'none'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-cache",
}


class Handler(SimpleHTTPRequestHandler):
    """Files of the site, its 404 page for everything else, no log line per request."""

    site_headers = HEADERS
    protocol_version = "HTTP/1.1"  # one connection for the files of a page, not one for each
    timeout = 60  # seconds that an idle connection is kept
    # Head and body leave in two parts. The system would hold the second back until the browser has
    # acknowledged the first, which it does after 40 ms: at every file.
    disable_nagle_algorithm = True

    # Named here, because the system's own table differs between machines.
    extensions_map = SimpleHTTPRequestHandler.extensions_map | {
        ".css": "text/css; charset=utf-8",
        ".html": "text/html; charset=utf-8",
        ".js": "text/javascript; charset=utf-8",
        ".mjs": "text/javascript; charset=utf-8",
        ".json": "application/json",
        ".svg": "image/svg+xml",
        ".wasm": "application/wasm",
        ".whl": "application/zip",
        ".woff2": "font/woff2",
    }

    def handle(self) -> None:
        """Answer until the reader goes on to another page, which may be in the middle of a file."""
        with contextlib.suppress(ConnectionError):
            super().handle()

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answer a missing file with the site's own page, as a static host does."""
        page = Path(self.directory) / "404.html"
        if code != 404 or not page.is_file():
            super().send_error(code, message, explain)
            return
        body = page.read_bytes()
        self.send_response(404)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def list_directory(self, path: str | os.PathLike[str]) -> None:
        """A folder without an index is a missing page: a static host lists nothing."""
        self.send_error(404)

    def end_headers(self) -> None:
        """Send the site's headers with every answer."""
        for name, value in self.site_headers.items():
            self.send_header(name, value)
        super().end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Keep the terminal for the address."""


class Server(ThreadingHTTPServer):
    """A server on this machine only, that refuses a port in use."""

    daemon_threads = True
    # With reuse, Linux lets a second server take a port whose first one is closing.
    allow_reuse_address = os.name != "nt"


def taken_on_ipv6(port: int) -> bool:
    """True if another program has this port of ::1, where a browser may look for localhost."""
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as probe:
            if Server.allow_reuse_address:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("::1", port))
    except OSError as error:
        return error.errno == errno.EADDRINUSE  # anything else: no IPv6 here
    return False


def open_server(site: Path, ports: range, handler: type[Handler] = Handler) -> Server:
    """A server on the first free port of the range."""
    for port in ports:
        if port and taken_on_ipv6(port):
            continue
        try:
            return Server(("127.0.0.1", port), partial(handler, directory=str(site)))
        except OSError:
            continue
    raise OSError(f"no free port from {ports.start} to {ports.stop - 1}")


def run(server: Server) -> None:
    """Serve until Ctrl-C or a polite kill."""
    try:
        # A shell without job control starts background programs with Ctrl-C ignored.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        address = f"http://localhost:{server.server_address[1]}"
        print(f"Serving {address}", flush=True)
        if os.environ.get("OPEN", "1") != "0":
            webbrowser.open(address)
        server.serve_forever()
    except KeyboardInterrupt:
        print("\nStopped.")
    finally:
        server.server_close()


def main() -> None:
    """Serve the folder named, or say why not."""
    parser = argparse.ArgumentParser(prog="python -m scripts.serve", description=__doc__)
    parser.add_argument("--site", type=Path, default=SITE, help="folder of the built site")
    site = parser.parse_args().site
    if not (site / "index.html").is_file():
        sys.exit("There is no built book to serve: run `make html` first.")
    try:
        server = open_server(site, range(FIRST_PORT, LAST_PORT + 1))
    except OSError as error:
        sys.exit(f"Cannot serve the book: {error}.")
    run(server)


if __name__ == "__main__":
    main()
