"""Requests of the methods, and their retries."""

from __future__ import annotations

import json
import logging
import random
import re
import time
import typing as t
import urllib.parse
import uuid

from .errors import APIConnectionError, APIError, APITimeoutError, CadreError, Canceled, api_error
from .model import Model, build, encode
from .paging import Page, PagedList
from .transport import Answer, Cancellation, Response, Transport

_log = logging.getLogger("cadre")

#: Maximum number of deprecations that a client logs.
_announcements_max = 100

_first_delay_seconds = 0.5
_delay_max_seconds = 8.0
#: With a longer Retry-After the error is raised instead of a retry.
_retry_after_max_seconds = 60


class Omit:
    """An omitted argument. None is sent as null."""

    def __repr__(self) -> str:
        return "OMIT"

    def __bool__(self) -> bool:
        return False


OMIT: t.Final = Omit()

T = t.TypeVar("T")
Maybe = t.Union[T, Omit]
Content = t.Union[bytes, bytearray, str, t.IO[bytes]]
ProjectId = t.Union[str, int]


class Options(t.TypedDict, total=False):
    """Options of every method."""

    #: Timeout of one try. The seconds of `wait` are added.
    timeout_seconds: float
    #: Maximum number of tries after the first one.
    max_retries: int
    #: Set it if the operation must happen once even if the program runs again. By default each request gets a new one.
    idempotency_key: str
    #: An `etag`: raises `PreconditionFailedError` if the resource has another revision.
    if_match: str
    headers: t.Mapping[str, str]


class Request(t.NamedTuple):
    """A request before it is sent. `path` begins with `/`, and its ids are filled in."""

    method: str
    path: str
    query: t.Mapping[str, t.Any] = {}
    #: Sent as JSON, or as a form (OAuth); None for no body.
    body: t.Optional[t.Mapping[str, t.Any]] = None
    #: Sent unchanged, instead of a body.
    content: t.Optional[Content] = None
    is_form: bool = False
    #: Of a POST: whether the service honors an idempotency key for it.
    is_once: bool = False
    accept: str = "application/json"


class Http:
    """Sends requests, and retries if that is safe."""

    def __init__(
        self,
        transport: Transport,
        credentials: t.Callable[[], t.Dict[str, str]],
        timeout_seconds: float,
        max_retries: int,
        headers: t.Mapping[str, str],
    ) -> None:
        self.transport = transport
        self._credentials = credentials
        self._timeout_seconds = timeout_seconds
        self._max_retries = max_retries
        self._headers = headers
        #: Deprecations that were already logged.
        self._announced: t.Set[t.Tuple[t.Optional[str], ...]] = set()

    def json(
        self, request: Request, options: t.Optional[Options] = None, cancellation: t.Optional[Cancellation] = None
    ) -> t.Tuple[t.Any, Answer]:
        """Sends a request and reads its response as JSON, or as text if it is not JSON; None if it is empty."""
        return self._tries(request, options or {}, cancellation, _whole)

    def open(
        self, request: Request, options: t.Optional[Options] = None, cancellation: t.Optional[Cancellation] = None
    ) -> Response:
        """Sends a request and returns the unread response."""
        return self._tries(request, options or {}, cancellation, lambda response, _: response)

    def _tries(
        self,
        request: Request,
        options: Options,
        cancellation: t.Optional[Cancellation],
        read: t.Callable[[Response, float], T],
    ) -> T:
        key = options.get("idempotency_key") or (str(uuid.uuid4()) if request.is_once else None)
        # A file can only be read once.
        is_stream = request.content is not None and not isinstance(request.content, (bytes, bytearray, str))
        max_retries = 0 if is_stream else options.get("max_retries", self._max_retries)
        is_repeatable = request.method != "POST" or key is not None
        attempt = 0
        while True:
            attempt += 1
            try:
                return self._try(request, options, key, attempt, cancellation, read)
            except CadreError as error:
                delay = None if attempt > max_retries else retry_delay(error, attempt, is_repeatable)
                if delay is None:
                    raise
                _log.debug("retrying %s %s in %.1f s, attempt %d", request.method, request.path, delay, attempt)
            if cancellation:
                cancellation.pause(delay)
            else:
                time.sleep(delay)

    def _try(
        self,
        request: Request,
        options: Options,
        key: t.Optional[str],
        attempt: int,
        cancellation: t.Optional[Cancellation],
        read: t.Callable[[Response, float], T],
    ) -> T:
        wait = (request.body or {}).get("wait", request.query.get("wait", 0))
        timeout_seconds = options.get("timeout_seconds", self._timeout_seconds)
        timeout_seconds += wait if isinstance(wait, (int, float)) else 0
        headers = {"accept": request.accept, **self._credentials(), **_lower(self._headers), **_lower(options.get("headers", {}))}
        body: t.Any = request.content
        if request.body is not None:
            headers["content-type"] = "application/x-www-form-urlencoded" if request.is_form else "application/json"
            body = _form(request.body) if request.is_form else json.dumps(request.body, default=encode).encode()
        elif request.content is not None:
            headers.setdefault("content-type", "application/octet-stream")
            body = body.encode() if isinstance(body, str) else body
        elif request.method in ("POST", "PUT"):
            body = b""
        if key is not None:
            headers["idempotency-key"] = key
        if "if_match" in options:
            headers["if-match"] = options["if_match"]
        began = time.monotonic()
        deadline = began + timeout_seconds
        target = request.path + query_text(request.query)
        response = self.transport.send(request.method, target, headers, body, timeout_seconds, cancellation)
        _log.debug(
            "%s %s answered %d in %.0f ms, request %s",
            request.method,
            request.path,
            response.status,
            (time.monotonic() - began) * 1000,
            response.headers.get("x-request-id"),
        )
        self._log_deprecation(request, response.headers)
        try:
            if response.status < 300:
                return read(response, deadline)
            if response.status < 400:
                target = response.headers.get("location", "another address")
                response.close()
                raise CadreError(f"The service redirects to {target}. Set base_url to that address.")
            data, answer = _whole(response, deadline)
            raise api_error(answer.status, answer.headers, data, attempt)
        except APIConnectionError as error:
            if cancellation and cancellation.is_canceled:
                raise Canceled("It was closed.") from error
            raise

    def _log_deprecation(self, request: Request, headers: t.Mapping[str, str]) -> None:
        """Logs a deprecation in the headers of a response once (RFC 9745, RFC 8594)."""
        announcement = tuple(headers.get(name) for name in ("deprecation", "sunset", "link"))
        deprecation, sunset, link = announcement
        if deprecation is None or announcement in self._announced or len(self._announced) >= _announcements_max:
            return
        self._announced.add(announcement)
        found = re.search(r'<([^<>]*)>[^,<]*rel="?deprecation"?', link or "")
        _log.warning(
            "%s %s uses a part of the API that will be removed%s%s",
            request.method,
            request.path,
            f" after {sunset}" if sunset else "",
            f"; see {found.group(1)}" if found else "",
        )


class Resource:
    """Methods of one resource, of the service or of one project."""

    def __init__(self, http: Http, project_id: t.Optional[ProjectId] = None) -> None:
        self._http = http
        self._project_id = project_id

    def _path(self, template: str, ids: t.Tuple[t.Union[str, int], ...]) -> str:
        return fill_path(template, ids if self._project_id is None else (self._project_id, *ids))

    def _json(
        self,
        method: str,
        template: str,
        ids: t.Tuple[t.Union[str, int], ...],
        result: t.Any,
        query: t.Mapping[str, t.Any],
        body: t.Optional[t.Mapping[str, t.Any]],
        options: t.Optional[Options],
        *,
        content: t.Optional[Content] = None,
        is_form: bool = False,
        is_once: bool = False,
    ) -> t.Any:
        path = self._path(template, ids)
        given = None if body is None else _given(body)
        return send_json(self._http, Request(method, path, _given(query), given, content, is_form, is_once), result, options)

    def _list(
        self,
        template: str,
        ids: t.Tuple[t.Union[str, int], ...],
        result: t.Any,
        member: str,
        query: t.Mapping[str, t.Any],
        options: t.Optional[Options],
    ) -> t.Any:
        path, given = self._path(template, ids), _given(query)

        def fetch(at: t.Mapping[str, t.Any]) -> t.Any:
            # A cursor replaces the caller's offset or page.
            first = {name: value for name, value in given.items() if "cursor" not in at or name not in ("offset", "page")}
            return send_json(self._http, Request("GET", path, {**first, **at}), result, options)

        return PagedList(fetch, member)

    def _open(
        self,
        method: str,
        template: str,
        ids: t.Tuple[t.Union[str, int], ...],
        query: t.Mapping[str, t.Any],
        options: t.Optional[Options],
    ) -> Response:
        request = Request(method, self._path(template, ids), _given(query), accept="*/*")
        return self._http.open(request, options)

    def _url(self, template: str, ids: t.Tuple[t.Union[str, int], ...], query: t.Mapping[str, t.Any]) -> str:
        return self._http.transport.base_url + self._path(template, ids) + query_text(_given(query))


def send_json(
    http: Http,
    request: Request,
    result: t.Any,
    options: t.Optional[Options],
    cancellation: t.Optional[Cancellation] = None,
) -> t.Any:
    """Sends a request and converts its response to `result`, with `last_response`."""
    data, answer = http.json(request, options, cancellation)
    made = build(result, data)
    if isinstance(made, Model):
        made.last_response = answer
    return made


def retry_delay(error: CadreError, attempt: int, is_repeatable: bool) -> t.Optional[float]:
    """
    Seconds until the next try; None if there must be none. Retried are 408, 429, 500 and higher, a 409 because an earlier try
    with the same idempotency key is still running, and connection errors. A request that is not repeatable is only retried if
    the service refused it before doing anything. A spent budget is not retried.
    """
    if isinstance(error, APIConnectionError):
        return backoff(attempt) if is_repeatable else None
    if not isinstance(error, APIError) or error.code.lower() == "budget_exceeded":
        return None
    details = error.details if isinstance(error.details, dict) else {}
    in_progress = error.status == 409 and details.get("conflicting_field") == "Idempotency-Key"
    is_refused = error.status == 429 or in_progress
    is_failed = error.status == 408 or error.status >= 500
    if not is_refused and not (is_failed and is_repeatable):
        return None
    retry_after = error.retry_after or 0
    return None if retry_after > _retry_after_max_seconds else max(backoff(attempt), retry_after)


def backoff(attempt: int, first: float = _first_delay_seconds, longest: float = _delay_max_seconds) -> float:
    """Exponential backoff with jitter, in seconds."""
    return float(min(longest, first * 2 ** min(attempt - 1, 30)) * (0.5 + random.random() / 2))


def fill_path(template: str, ids: t.Sequence[t.Union[str, int]]) -> str:
    """Fills ids into a path; raises for an id that would change the path."""
    pieces = template.split("{")
    path = pieces[0]
    for given, piece in zip(ids, pieces[1:]):
        name, _, rest = piece.partition("}")
        if str(given) in ("", ".", ".."):
            raise CadreError(f"{name} must be an id, not {str(given)!r}.")
        path += urllib.parse.quote(str(given), safe="") + rest
    return path


def query_text(query: t.Mapping[str, t.Any]) -> str:
    """`?` and the members that are not None; empty if there are none."""
    text = _form(query)
    return f"?{text.decode()}" if text else ""


def _form(members: t.Mapping[str, t.Any]) -> bytes:
    return urllib.parse.urlencode({name: _text(value) for name, value in members.items() if value is not None}).encode()


def _text(value: t.Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return ",".join(map(_text, value)) if isinstance(value, (list, tuple)) else str(value)


def _given(members: t.Mapping[str, t.Any]) -> t.Dict[str, t.Any]:
    return {name: value for name, value in members.items() if value is not OMIT}


def _lower(headers: t.Mapping[str, str]) -> t.Dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


def _whole(response: Response, deadline: float) -> t.Tuple[t.Any, Answer]:
    pieces = []
    while True:
        left = deadline - time.monotonic()
        if left <= 0:
            response.close()
            raise APITimeoutError("The response was not complete within the timeout.")
        got = response.piece(left)
        if got == b"":
            break
        pieces.append(got)
    content = b"".join(pieces)
    if response.status == 204 or content == b"":
        return None, response.answer
    if not response.headers.get("content-type", "").startswith("application/json"):
        return content.decode(errors="replace"), response.answer
    try:
        return json.loads(content), response.answer
    except ValueError as error:
        # For an error the status is enough; a proxy may have replaced or cut the body.
        if response.status >= 400:
            return content.decode(errors="replace"), response.answer
        raise APIConnectionError("The response is not valid JSON.") from error


__all__ = ["Http", "Maybe", "OMIT", "Omit", "Options", "Page", "PagedList", "ProjectId", "Request", "Resource"]
