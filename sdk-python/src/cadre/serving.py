"""Serves tools in this process: claims their calls under leases, runs handlers, and sends the results."""

from __future__ import annotations

import json
import threading
import typing as t
import uuid

from ._generated.models import ToolCallClaim
from .errors import APIConnectionError, APIError, CadreError, Canceled
from .model import encode
from .resource import Http, Options, ProjectId, Request, backoff, fill_path, send_json
from .transport import Cancellation

_wait_seconds = 30
_retry_seconds = (0.25, 10.0)
_path = "/api/v1/projects/{project_id}/tool-calls"
#: Codes of errors after which this process no longer holds the call.
_lost_codes = ("lease_lost", "task_canceled", "tool_call_already_resolved")


class ServedToolCall:
    """A call, as passed to its handler."""

    def __init__(self, claimed: t.Any) -> None:
        self.id: str = claimed.id
        self.name: str = claimed.name
        self.task_id: str = claimed.task_id
        self.agent_id: str = claimed.agent_id
        self.attempt: int = claimed.attempt
        #: The same in every attempt: pass it to the system that the call changes.
        self.idempotency_key: str = claimed.idempotency_key
        #: Set when the task is canceled, the lease is lost, or serving ends; the handler should then stop.
        self.canceled = threading.Event()


ToolHandler = t.Callable[[t.Any, ServedToolCall], t.Any]
ErrorHandler = t.Callable[[BaseException, t.Optional[ServedToolCall]], None]


def serve_tools(
    http: Http,
    project_id: ProjectId,
    handlers: t.Mapping[str, ToolHandler],
    *,
    stop: t.Optional[threading.Event],
    concurrency: int,
    lease_seconds: int,
    grace_seconds: float,
    on_error: t.Optional[ErrorHandler],
) -> None:
    """See `ProjectTools.serve`."""
    serving = _Serving(http, project_id, handlers, lease_seconds, on_error or (lambda _error, _call: None))
    serving.run(stop or threading.Event(), concurrency, grace_seconds)


class _Serving:
    def __init__(
        self,
        http: Http,
        project_id: ProjectId,
        handlers: t.Mapping[str, ToolHandler],
        lease_seconds: int,
        on_error: ErrorHandler,
    ) -> None:
        self._http = http
        self._path = fill_path(_path, [project_id])
        self._handlers = dict(handlers)
        self._lease_seconds = lease_seconds
        self._on_error = on_error
        self._ending = Cancellation()
        self._changed = threading.Condition()
        self._refusal: t.Optional[BaseException] = None
        self._running: t.Set[ServedToolCall] = set()
        self._is_stopped = False

    def run(self, stop: threading.Event, concurrency: int, grace_seconds: float) -> None:
        threads = [threading.Thread(target=self._serve, daemon=True) for _ in range(concurrency)]
        for thread in threads:
            thread.start()
        try:
            # A thread cannot wait for two events at once, so it polls.
            while self._refusal is None and not stop.wait(0.1):
                pass
        finally:
            self._ending.cancel()
            self._finish(threads, grace_seconds)
        if self._refusal is not None:
            raise self._refusal

    def _finish(self, threads: t.List[threading.Thread], grace_seconds: float) -> None:
        """Waits for running calls. After `grace_seconds` it sets `canceled` of the others and sends none of their results."""
        with self._changed:
            self._changed.wait_for(lambda: not self._running, grace_seconds)
            self._is_stopped = True
            for call in self._running:
                call.canceled.set()
        for thread in threads:
            # The thread of a handler that ignores `canceled` ends with the process.
            thread.join(1.0)

    def _serve(self) -> None:
        body = {"tools": list(self._handlers), "lease_seconds": self._lease_seconds, "wait": _wait_seconds}
        claim = Request("POST", f"{self._path}/claim", body=body)
        options: Options = {"timeout_seconds": 15}
        failures = 0
        while not self._ending.is_canceled:
            try:
                answer = send_json(self._http, claim, ToolCallClaim, options, self._ending)
                failures = 0
            except CadreError as error:
                if self._ending.is_canceled:
                    return
                if not _is_passing(error):
                    with self._changed:
                        self._refusal = self._refusal or error
                    return
                self._tell(error, None)
                failures += 1
                try:
                    self._ending.pause(backoff(failures, *_retry_seconds))
                except Canceled:
                    return
                continue
            claimed = answer.tool_call if answer is not None else None
            handler = self._handlers.get(claimed.name) if claimed is not None else None
            if claimed is not None and handler is not None:
                self._perform(claimed, handler)

    def _perform(self, claimed: t.Any, handler: ToolHandler) -> None:
        """Handles one call under its lease, and sends its result."""
        call = ServedToolCall(claimed)
        ended = threading.Event()
        with self._changed:
            self._running.add(call)
        beat = threading.Thread(target=self._beat, args=(call, claimed.lease.token, ended), daemon=True)
        beat.start()
        try:
            result = _result_of(handler, claimed.arguments, call)
            # The service offers the call again or asks a person, so a result of this process would be stale.
            if not call.canceled.is_set():
                self._give(call, {**result, "lease": claimed.lease.token})
        except CadreError as error:
            self._tell(error, call)
        finally:
            ended.set()
            with self._changed:
                self._running.discard(call)
                self._changed.notify_all()

    def _beat(self, call: ServedToolCall, lease: str, ended: threading.Event) -> None:
        request = Request("POST", f"{self._path}/{call.id}/heartbeat", body={"lease": lease}, is_once=True)
        while not ended.wait(self._lease_seconds / 3):
            try:
                send_json(self._http, request, t.Any, {"timeout_seconds": self._lease_seconds / 3})
            except CadreError as error:
                if ended.is_set():
                    return
                # After any other error the next heartbeat follows.
                if _is_lost(error):
                    call.canceled.set()
                self._tell(error, call)
                if call.canceled.is_set():
                    return

    def _give(self, call: ServedToolCall, body: t.Dict[str, t.Any]) -> None:
        # One key for all tries to send this result.
        options: Options = {"idempotency_key": str(uuid.uuid4())}
        request = Request("POST", f"{self._path}/{call.id}/result", body=body, is_once=True)
        attempt = 0
        while True:
            attempt += 1
            try:
                send_json(self._http, request, t.Any, options)
                return
            except CadreError as error:
                self._tell(error, call)
                if isinstance(error, APIError) and not _is_passing(error) and "error" not in body and not _is_lost(error):
                    # A call without a result would be made again each time its lease ends.
                    return self._give(call, {"lease": body["lease"], "error": _refusal_of(error)})
                if not _is_passing(error) or call.canceled.wait(backoff(attempt, *_retry_seconds)):
                    return

    def _tell(self, error: BaseException, call: t.Optional[ServedToolCall]) -> None:
        self._on_error(error, call)


def _result_of(handler: ToolHandler, arguments: t.Any, call: ServedToolCall) -> t.Dict[str, t.Any]:
    try:
        output = handler(arguments, call)
        # A result that is not JSON is an error of the tool, like any other.
        json.dumps(output, default=encode, allow_nan=False)
        return {"output": output}
    except Exception as error:  # noqa: BLE001 -- whatever a tool raises is a result that the model reads
        code = _clean(getattr(error, "code", None), 64)
        return {"error": {"code": code or "tool_failed", "message": _clean(str(error), 2000) or type(error).__name__}}


def _refusal_of(error: APIError) -> t.Dict[str, str]:
    """Why the service refused a result, for the model."""
    reasons = "; ".join(why if why.startswith(field) else f"{field} {why}" for field, why, _code in error.issues)
    return {"code": error.code[:64], "message": _clean(f"The result of the tool was refused: {reasons or error.message}", 2000)}


def _clean(text: t.Any, limit: int) -> str:
    """Text that the service stores: well-formed and without U+0000. Empty for anything else."""
    if not isinstance(text, str):
        return ""
    return text[:limit].replace("\0", "").encode("utf-8", "replace").decode()


def _is_lost(error: BaseException) -> bool:
    return isinstance(error, APIError) and error.code in _lost_codes


def _is_passing(error: BaseException) -> bool:
    """Whether the same request may succeed later."""
    if isinstance(error, APIConnectionError):
        return True
    return isinstance(error, APIError) and (
        error.status >= 500 or error.status == 429 or error.code == "resource_conflict"
    )
