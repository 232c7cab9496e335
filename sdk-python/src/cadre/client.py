"""The client of a service."""

from __future__ import annotations

import os
import ssl
import threading
import time
import typing as t

from ._generated import resources
from ._generated.models import AgentWithStats, Task
from ._version import __version__
from .errors import CadreError, WaitTimeoutError
from .model import Model
from .resource import OMIT, Http, Maybe, Omit, Options, ProjectId, Request, backoff, fill_path, query_text, send_json
from .serving import ErrorHandler, ToolHandler, serve_tools
from .streams import ProjectStream, StateHandler, TaskStream, is_finished
from .transport import Response, Transport
from .webhooks import verify_webhook

if t.TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._generated.params import CreateTaskParam

_timeout_seconds_default = 60.0
_max_retries_default = 2
_poll_seconds = (0.1, 2.0)
_task_path = "/api/v1/projects/{project_id}/tasks/{task_id}"

T = t.TypeVar("T")
Token = t.Union[str, t.Callable[[], str]]


class ProjectAgents(resources.Agents):
    def wait_until(
        self,
        agent_id: str,
        state: str,
        *,
        timeout_seconds: t.Optional[float] = _timeout_seconds_default,
    ) -> AgentWithStats:
        """Waits until an agent has a status, by default at most a minute. Raises `WaitTimeoutError`."""
        return _wait_for(
            f"{agent_id} to be {state}",
            timeout_seconds,
            lambda _: self.get(agent_id),
            lambda agent: agent.status == state,
        )


class ProjectTasks(resources.Tasks):
    def stream(
        self,
        task_id: str,
        *,
        after: int = 0,
        on_state: t.Optional[StateHandler] = None,
        options: t.Optional[Options] = None,
    ) -> TaskStream:
        """
        Streams the events of a task, and reconnects as needed. The stream starts after the sequence `after`. `on_state` is
        called with `connecting`, `open` and `reconnecting`.
        """
        return TaskStream(self._http, lambda: self._stream_path(task_id), self.get, after, options, on_state)

    def run(
        self,
        agent_id: str,
        *,
        on_state: t.Optional[StateHandler] = None,
        options: t.Optional[Options] = None,
        **task: Unpack[CreateTaskParam],
    ) -> TaskStream:
        """Creates a task for an agent and streams its events. The task continues even if the stream is not read."""

        def begin() -> str:
            return self._stream_path(self.create(agent_id, options=options, **task).id)

        return TaskStream(self._http, begin, self.get, 0, options, on_state)

    def wait(
        self,
        task_id: str,
        *,
        or_waiting: bool = False,
        timeout_seconds: t.Optional[float] = None,
    ) -> Task:
        """
        Waits until a task has ended, and returns it, also if it failed. With `or_waiting` it also returns a task that waits,
        such as for an approval. Raises `WaitTimeoutError`.
        """
        return _wait_for(
            f"the end of {task_id}",
            timeout_seconds,
            lambda wait: self.get(task_id, wait=wait),
            lambda task: is_finished(task.status) or (or_waiting and task.status == "waiting"),
        )

    def _stream_path(self, task_id: str) -> str:
        return f"{self._path(_task_path, (task_id,))}/events/stream"


class ProjectTools(resources.Tools):
    def serve(
        self,
        handlers: t.Mapping[str, ToolHandler],
        *,
        stop: t.Optional[threading.Event] = None,
        concurrency: int = 10,
        lease_seconds: int = 60,
        grace_seconds: float = 30,
        on_error: t.Optional[ErrorHandler] = None,
    ) -> None:
        """
        Serves tools of kind `client`: claims their calls and runs the handlers, up to `concurrency` at a time, each on a
        thread. A handler gets the arguments and the call. Its return value is the result: text, or any JSON value. If it
        raises, the model reads the text of the error and its `code`, if it has one. Leases are extended while handlers work.

        Returns when `stop` is set and the running calls have ended, for which they have `grace_seconds`. Raises the error if
        the service refuses the claims. `on_error` is called with errors that do not end the serving.
        """
        assert self._project_id is not None
        serve_tools(
            self._http,
            self._project_id,
            handlers,
            stop=stop,
            concurrency=concurrency,
            lease_seconds=lease_seconds,
            grace_seconds=grace_seconds,
            on_error=on_error,
        )


class ServiceProjects(resources.ServiceProjects):
    def stream(
        self,
        project_id: ProjectId,
        *,
        last_event_id: t.Optional[str] = None,
        on_state: t.Optional[StateHandler] = None,
        options: t.Optional[Options] = None,
    ) -> ProjectStream:
        """Streams the events of all tasks of a project, and reconnects as needed."""
        path = fill_path("/api/v1/projects/{project_id}/events/stream", [project_id])
        return ProjectStream(self._http, path, last_event_id, options, on_state)


class ServiceWebhooks(resources.ServiceWebhooks):
    verify = staticmethod(verify_webhook)


class Project(resources.ProjectResources):
    """The resources of one project."""

    def __init__(self, http: Http, project_id: ProjectId) -> None:
        super().__init__(http, project_id)
        self.id = project_id
        self.agents = ProjectAgents(http, project_id)
        self.tasks = ProjectTasks(http, project_id)
        self.tools = ProjectTools(http, project_id)


class Cadre(resources.ServiceResources):
    """
    The API of a Cadre service. `client.project(id)` has the methods of a project. Requests that are safe to repeat are
    retried. Several threads may use one client.

    `api_key` defaults to `CADRE_API_KEY`; None sends none. `token` is an OAuth access token, or a function that returns a valid
    one, and replaces the key. `base_url` defaults to `CADRE_BASE_URL`, then to `http://127.0.0.1:8080`. `timeout_seconds` limits
    one try, and `headers` are sent with every request. Debug messages go to the logger `cadre`, without secrets.
    """

    def __init__(
        self,
        *,
        api_key: Maybe[t.Optional[str]] = OMIT,
        token: t.Optional[Token] = None,
        base_url: t.Optional[str] = None,
        timeout_seconds: float = _timeout_seconds_default,
        max_retries: int = _max_retries_default,
        headers: t.Optional[t.Mapping[str, str]] = None,
        ssl_context: t.Optional[ssl.SSLContext] = None,
    ) -> None:
        key = (os.environ.get("CADRE_API_KEY") if token is None else None) if isinstance(api_key, Omit) else api_key
        self.base_url = _base_of(base_url or os.environ.get("CADRE_BASE_URL") or "http://127.0.0.1:8080")

        def credentials() -> t.Dict[str, str]:
            if token is not None:
                return {"authorization": f"Bearer {token() if callable(token) else token}"}
            return {"x-api-key": key} if key else {}

        every = {"user-agent": f"cadre-sdk-python/{__version__}", **(headers or {})}
        self._http = Http(Transport(self.base_url, ssl_context), credentials, timeout_seconds, max_retries, every)
        super().__init__(self._http)
        self.projects = ServiceProjects(self._http)
        self.webhooks = ServiceWebhooks(self._http)

    def project(self, project_id: ProjectId) -> Project:
        """The resources of one project."""
        return Project(self._http, project_id)

    def request(
        self,
        method: str,
        path: str,
        *,
        query: t.Optional[t.Mapping[str, t.Any]] = None,
        body: t.Optional[t.Mapping[str, t.Any]] = None,
        options: t.Optional[Options] = None,
    ) -> t.Any:
        """Sends any request: `request("GET", "/api/v1/hello")`. A POST is retried only with the option `idempotency_key`."""
        return send_json(self._http, Request(method, path, query or {}, body), Model, options)

    def open(
        self,
        method: str,
        path: str,
        *,
        query: t.Optional[t.Mapping[str, t.Any]] = None,
        body: t.Optional[t.Mapping[str, t.Any]] = None,
        options: t.Optional[Options] = None,
    ) -> Response:
        """Sends any request and returns the unread response, for large or binary content. Raises for a status from 400."""
        return self._http.open(Request(method, path, query or {}, body, accept="*/*"), options)

    def url(self, path: str, query: t.Optional[t.Mapping[str, t.Any]] = None) -> str:
        """The full URL of a path."""
        return self.base_url + path + query_text(query or {})

    def close(self) -> None:
        """Closes idle connections."""
        self._http.transport.close()

    def __enter__(self) -> Cadre:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _wait_for(
    what: str,
    timeout_seconds: t.Optional[float],
    read: t.Callable[[int], T],
    is_done: t.Callable[[T], bool],
) -> T:
    """Polls until a condition holds, at growing intervals. `read` may wait for a change, for at most the given whole seconds."""
    end = time.monotonic() + (float("inf") if timeout_seconds is None else timeout_seconds)
    attempt = 0
    while True:
        attempt += 1
        left = max(0.0, end - time.monotonic())
        value = read(int(min(30.0, left)))
        if is_done(value):
            return value
        left = end - time.monotonic()
        if left <= 0:
            raise WaitTimeoutError(f"Waited {timeout_seconds} s for {what}.")
        time.sleep(min(backoff(attempt, *_poll_seconds), left))


def _base_of(url: str) -> str:
    """Removes slashes and `/api/v1` from the end."""
    base = url.rstrip("/")
    if base.endswith("/api/v1"):
        base = base[: -len("/api/v1")]
    if not base.lower().startswith(("http://", "https://")):
        raise CadreError(f"base_url must begin with http:// or https://, not {url}")
    return base
