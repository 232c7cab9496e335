"""Errors of this SDK."""

from __future__ import annotations

import typing as t


class CadreError(Exception):
    """The base of all errors of this SDK."""


class APIConnectionError(CadreError):
    """There was no response: the connection could not be made or broke, or the response was not one of the service."""


class APITimeoutError(APIConnectionError):
    """There was no response within the timeout."""


class WaitTimeoutError(CadreError):
    """A wait timed out."""


class WebhookVerificationError(CadreError):
    """A request to a webhook is not signed by the service, or is too old."""


class Canceled(CadreError):
    """The caller closed the stream or stopped the serving."""


class Issue(t.NamedTuple):
    """An invalid field. `code`: `required`, `too_short`, `too_long`, `out_of_range`, `invalid_format` or `invalid_choice`."""

    field: str
    message: str
    code: str


class APIError(CadreError):
    """The service refused the request, or failed. There is a subclass for each frequent status."""

    def __init__(self, status: int, headers: t.Mapping[str, str], body: t.Any, attempts: int = 1) -> None:
        error = _error_of(body)
        super().__init__(error.get("message") or f"The service responded with status {status}.")
        self.status = status
        #: Lowercase in the error format `agents`, uppercase in `control` (`docs/reference/errors.md`); OAuth's under `/oauth2`.
        self.code: str = error.get("code") or f"status_{status}"
        self.details: t.Any = error.get("details")
        #: Identifies the request in the logs of the service.
        self.request_id: t.Optional[str] = error.get("request_id") or headers.get("x-request-id")
        self.headers = headers
        #: Seconds until a retry makes sense; None if the service does not say.
        self.retry_after: t.Optional[float] = error.get("retry_after", _seconds_of(headers.get("retry-after")))
        #: Scopes of which the credential needs one; empty if a scope is not the reason.
        self.required_scopes: t.List[str] = error.get("required_scopes") or []
        #: Number of tries. After two tries of a delete, a 404 may mean that the first one succeeded.
        self.attempts = attempts

    @property
    def message(self) -> str:
        return str(self.args[0])

    @property
    def issues(self) -> t.List[Issue]:
        """The invalid fields: all of them in the error format `agents`, the first in `control`."""
        details = self.details
        if isinstance(details, list):
            listed = [one for one in details if isinstance(one, dict) and "field" in one]
            return [Issue(str(one["field"]), str(one.get("message", "")), str(one.get("code", ""))) for one in listed]
        if not isinstance(details, dict):
            return []
        field, issue = details.get("field"), details.get("issue")
        if not isinstance(field, str) or not isinstance(issue, str):
            return []
        return [Issue(field, issue, "invalid_format")]


class BadRequestError(APIError):
    """400."""


class AuthenticationError(APIError):
    """401."""


class PermissionDeniedError(APIError):
    """403."""


class NotFoundError(APIError):
    """404."""


class ConflictError(APIError):
    """409."""


class PreconditionFailedError(APIError):
    """412: the resource has another revision than `if_match`."""


class UnprocessableEntityError(APIError):
    """422: the idempotency key was used with another request, or a result does not fit its schema."""


class RateLimitError(APIError):
    """429."""


class InternalServerError(APIError):
    """500 and more."""


_classes: t.Dict[int, t.Type[APIError]] = {
    400: BadRequestError,
    401: AuthenticationError,
    403: PermissionDeniedError,
    404: NotFoundError,
    409: ConflictError,
    412: PreconditionFailedError,
    422: UnprocessableEntityError,
    429: RateLimitError,
}


def api_error(status: int, headers: t.Mapping[str, str], body: t.Any, attempts: int) -> APIError:
    """The error for the status of a response."""
    made = _classes.get(status, InternalServerError if status >= 500 else APIError)
    return made(status, headers, body, attempts)


def _error_of(body: t.Any) -> t.Dict[str, t.Any]:
    """The members of an error in a body: `{error: {…}}` of `agents` and `control`, `{error, error_description}` of OAuth."""
    if not isinstance(body, dict):
        return {}
    error = body.get("error")
    if isinstance(error, str):
        members = {"code": error, "message": body.get("error_description"), "retry_after": body.get("retry_after")}
        if not isinstance(members["message"], str):
            members["message"] = error
    elif isinstance(error, dict):
        members = error
    else:
        return {}
    kinds: t.Dict[str, t.Any] = {"code": str, "message": str, "request_id": str, "retry_after": (int, float), "required_scopes": list}
    known = {name: members[name] for name, kind in kinds.items() if isinstance(members.get(name), kind)}
    return {**known, "details": members.get("details")}


def _seconds_of(header: t.Optional[str]) -> t.Optional[float]:
    """Seconds of a `Retry-After`. The service sends no dates."""
    try:
        seconds = float(header or "")
    except ValueError:
        return None
    return seconds if 0 <= seconds < float("inf") else None
