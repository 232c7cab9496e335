"""HTTP with reused connections."""

from __future__ import annotations

import http.client
import selectors
import socket
import ssl
import threading
import time
import typing as t
import urllib.parse
import urllib.request

from .errors import APIConnectionError, APITimeoutError, CadreError, Canceled

#: A connection that was idle for longer is not reused: the service may be closing it.
_idle_max_seconds = 4.0
_kept_max = 16
_piece_bytes = 65_536


class Answer(t.NamedTuple):
    """Status and headers of a response. `etag` is the revision, for `if_match`; None if the resource has none."""

    status: int
    headers: t.Mapping[str, str]
    request_id: t.Optional[str]
    etag: t.Optional[str]


class Cancellation:
    """Ends a wait for a socket from another thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._connections: t.Set[http.client.HTTPConnection] = set()
        self._canceled = threading.Event()

    @property
    def is_canceled(self) -> bool:
        return self._canceled.is_set()

    def cancel(self) -> None:
        with self._lock:
            self._canceled.set()
            for connection in self._connections:
                _shut(connection)

    def pause(self, seconds: float) -> None:
        """Waits; raises `Canceled` if it is canceled meanwhile."""
        if self._canceled.wait(seconds):
            raise Canceled("It was closed.")

    def add(self, connection: http.client.HTTPConnection) -> None:
        with self._lock:
            if self._canceled.is_set():
                raise Canceled("It was closed.")
            self._connections.add(connection)

    def remove(self, connection: http.client.HTTPConnection) -> None:
        with self._lock:
            self._connections.discard(connection)


class _WholeHead(http.client.HTTPResponse):
    """Detects a truncated head, which the standard library takes for a complete response with an empty body."""

    def begin(self) -> None:
        lines = _Lines(self.fp)
        self.fp = lines  # type: ignore[assignment]
        try:
            super().begin()
        finally:
            # It is None if the response was closed.
            if self.fp is lines:  # type: ignore[comparison-overlap]
                self.fp = lines.file
        if lines.last == b"":
            raise http.client.RemoteDisconnected("The head of the response was cut off.")


class _Lines:
    def __init__(self, file: t.Any) -> None:
        self.file = file
        self.last = b"\n"

    def readline(self, limit: int = -1) -> bytes:
        self.last = self.file.readline(limit)
        return self.last

    def __getattr__(self, name: str) -> t.Any:
        return getattr(self.file, name)


class Response:
    """A response that is read as it arrives. Read it to its end, close it, or use it in a `with` statement."""

    def __init__(
        self,
        response: http.client.HTTPResponse,
        connection: http.client.HTTPConnection,
        release: t.Callable[[http.client.HTTPConnection, bool], None],
    ) -> None:
        self.status = response.status
        self.headers: t.Mapping[str, str] = {name.lower(): value for name, value in response.getheaders()}
        self._response = response
        self._connection = connection
        self._release: t.Optional[t.Callable[[http.client.HTTPConnection, bool], None]] = release

    @property
    def answer(self) -> Answer:
        return Answer(self.status, self.headers, self.headers.get("x-request-id"), self.headers.get("etag"))

    def piece(self, timeout_seconds: t.Optional[float]) -> bytes:
        """The received bytes, at least one; empty at the end. Raises `APITimeoutError` if none arrive in time."""
        if self._release is None:
            return b""
        try:
            if self._connection.sock is not None:
                self._connection.sock.settimeout(timeout_seconds)
            got = self._response.read1(_piece_bytes)
        except socket.timeout as error:
            self.close()
            raise APITimeoutError("The response stopped before its end.") from error
        except (OSError, http.client.HTTPException, ValueError, AttributeError) as error:
            self.close()
            raise APIConnectionError(f"The response was cut off: {_reason(error)}") from error
        if got == b"":
            if self._response.length:
                self.close()
                raise APIConnectionError(f"The response was cut off: {self._response.length} bytes are missing.")
            self._end(self._response.will_close)
        return got

    def iter_bytes(self, timeout_seconds: t.Optional[float] = 60) -> t.Iterator[bytes]:
        """The body in pieces. `timeout_seconds` limits the wait for each."""
        try:
            while True:
                got = self.piece(timeout_seconds)
                if got == b"":
                    return
                yield got
        finally:
            self.close()

    def read(self, timeout_seconds: t.Optional[float] = 60) -> bytes:
        """The rest of the body."""
        return b"".join(self.iter_bytes(timeout_seconds))

    def close(self) -> None:
        """Closes the connection if the body was not read to its end."""
        self._end(True)

    def __enter__(self) -> Response:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _end(self, is_broken: bool) -> None:
        release, self._release = self._release, None
        if release is not None:
            self._response.close()
            release(self._connection, is_broken)


class Transport:
    """Connections to one service. Several threads may use it."""

    def __init__(self, base_url: str, ssl_context: t.Optional[ssl.SSLContext]) -> None:
        self._lock = threading.Lock()
        self._kept: t.List[t.Tuple[http.client.HTTPConnection, float]] = []
        self._closed = False
        parts = urllib.parse.urlsplit(base_url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise CadreError(f"base_url must begin with http:// or https://, not {base_url}")
        self.base_url = base_url.rstrip("/")
        self.base_path = parts.path.rstrip("/")
        self._secure = parts.scheme == "https"
        self._host = parts.hostname
        self._port = parts.port or (443 if self._secure else 80)
        self._authority = parts.netloc.rpartition("@")[2]
        self._context = ssl_context or (ssl.create_default_context() if self._secure else None)
        self._proxy = _proxy_of(parts.scheme, parts.hostname)

    def send(
        self,
        method: str,
        target: str,
        headers: t.Mapping[str, str],
        body: t.Any,
        timeout_seconds: float,
        cancellation: t.Optional[Cancellation],
    ) -> Response:
        """Sends a request, and returns the response when its head has arrived. `target` is path and query."""
        connection = self._take(timeout_seconds)
        target = self.base_path + target
        if self._proxy and not self._secure:
            target = f"http://{self._authority}{target}"
        try:
            if cancellation:
                cancellation.add(connection)
            if connection.sock is None:
                connection.connect()
            else:
                connection.sock.settimeout(timeout_seconds)
            if cancellation and cancellation.is_canceled:
                raise Canceled("It was closed.")
            connection.request(method, target, body=body, headers=dict(headers))
            response = connection.getresponse()
        except BaseException as error:
            self._give(connection, True, cancellation)
            if cancellation and cancellation.is_canceled:
                raise Canceled("It was closed.") from error
            if isinstance(error, socket.timeout):
                raise APITimeoutError(f"No response to {method} {target} within {timeout_seconds:g} s.") from error
            if isinstance(error, (OSError, http.client.HTTPException)):
                raise APIConnectionError(f"The connection for {method} {target} failed: {_reason(error)}") from error
            raise
        return Response(response, connection, lambda used, is_broken: self._give(used, is_broken, cancellation))

    def close(self) -> None:
        """Closes idle connections."""
        with self._lock:
            self._closed = True
            kept, self._kept = self._kept, []
        for connection, _ in kept:
            connection.close()

    def __del__(self) -> None:
        self.close()

    def _take(self, timeout_seconds: float) -> http.client.HTTPConnection:
        while True:
            with self._lock:
                if not self._kept:
                    return self._new(timeout_seconds)
                connection, since = self._kept.pop()
            if time.monotonic() - since <= _idle_max_seconds and not _has_news(connection):
                return connection
            connection.close()

    def _new(self, timeout_seconds: float) -> http.client.HTTPConnection:
        host, port = self._proxy or (self._host, self._port)
        connection: http.client.HTTPConnection
        if self._secure:
            connection = http.client.HTTPSConnection(host, port, timeout=timeout_seconds, context=self._context)
        else:
            connection = http.client.HTTPConnection(host, port, timeout=timeout_seconds)
        if self._proxy and self._secure:
            connection.set_tunnel(self._host, self._port)
        connection.response_class = _WholeHead
        return connection

    def _give(
        self, connection: http.client.HTTPConnection, is_broken: bool, cancellation: t.Optional[Cancellation]
    ) -> None:
        if cancellation:
            cancellation.remove(connection)
        with self._lock:
            if not is_broken and not self._closed and connection.sock is not None and len(self._kept) < _kept_max:
                self._kept.append((connection, time.monotonic()))
                return
        connection.close()


def _proxy_of(scheme: str, host: str) -> t.Optional[t.Tuple[str, int]]:
    """The proxy that the environment names for a host (`HTTPS_PROXY`, `HTTP_PROXY`, `NO_PROXY`)."""
    address = urllib.request.getproxies().get(scheme)
    if not address or urllib.request.proxy_bypass(host):
        return None
    parts = urllib.parse.urlsplit(address if "//" in address else f"//{address}")
    return (parts.hostname, parts.port or 80) if parts.hostname else None


def _has_news(connection: http.client.HTTPConnection) -> bool:
    """Whether an idle connection has data to read, which means that it has ended."""
    if connection.sock is None:
        return True
    try:
        with selectors.DefaultSelector() as selector:
            selector.register(connection.sock, selectors.EVENT_READ)
            return bool(selector.select(0))
    except (OSError, ValueError):
        return True


def _shut(connection: http.client.HTTPConnection) -> None:
    sock = connection.sock
    if sock is None:
        return
    try:
        sock.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass


def _reason(error: BaseException) -> str:
    return str(error) or type(error).__name__
