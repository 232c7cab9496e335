"""Streams of server-sent events that resume after a broken connection."""

from __future__ import annotations

import codecs
import json
import threading
import time
import typing as t

from ._generated.models import Task
from .errors import APIConnectionError, APIError, CadreError, Canceled
from .model import Model
from .resource import Http, Options, Request, backoff
from .transport import Cancellation, Response

#: The service writes at least every 15 seconds, so after this time without a byte the connection is dead.
_silence_max_seconds = 45.0
#: Delay after a connection with events, and after the first one without; it doubles with each further failure.
_reconnect_seconds = {"again": 0.1, "first": 1.0, "longest": 15.0}
#: A connection that lasted this long counts as good, even without events.
_good_connection_seconds = 30.0
#: Consecutive failed connections after which the stream raises: about four minutes.
_failures_max = 20

_final_states = ("completed", "failed", "canceled", "expired")
_final_events = tuple(f"task.{state}" for state in _final_states)


def is_finished(status: str) -> bool:
    """Whether a task has ended; its status is then final."""
    return status in _final_states


class TaskStreamEvent(Model):
    """
    An event of a task. Stored events have a `sequence`, dense from 1. Live events are not stored and have the sequence of the
    last stored event: `task.snapshot` (data: `task`) comes with each connection, `message.snapshot` (`message_id`, `text`)
    replaces the text of a message so far, and `message.delta` and `reasoning.delta` (`message_id`, `text`) are its next piece.
    """

    type: str
    task_id: str
    sequence: int
    created_at: str
    data: t.Dict[str, t.Any]


class ProjectStreamEvent(Model):
    """
    An event of a project. `project.snapshot` comes with each connection: `data` has `tasks` and `agents` by state, and
    `resumed`; if that is False, events may be missing, so read lists again. `agent.status` has `agent_id` and `status`. All
    others are events of tasks, with `task_id`, `agent_id`, `sequence` and the task's `status` when the event was sent.
    """

    type: str
    created_at: str
    project_id: t.Optional[str]
    task_id: t.Optional[str]
    agent_id: t.Optional[str]
    sequence: t.Optional[int]
    status: t.Optional[str]
    data: t.Optional[t.Dict[str, t.Any]]


class Frame(t.NamedTuple):
    """A frame. Without an `id` it does not change the position to resume at. `data` is empty if the frame has only an id."""

    id: t.Optional[str]
    type: str
    data: str


class FrameReader:
    """Parses the bytes of a stream, in pieces, into complete frames (WHATWG HTML 9.2.6)."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest = ""
        self._begin()

    def read(self, piece: bytes) -> t.Iterator[Frame]:
        text = self._rest + self._decoder.decode(piece)
        # A line feed may follow a carriage return at the end.
        held = "\r" if text.endswith("\r") else ""
        lines = (text[: len(text) - len(held)]).replace("\r\n", "\n").replace("\r", "\n").split("\n")
        self._rest = lines.pop() + held
        for line in lines:
            frame = self._line(line)
            if frame:
                yield frame

    def _begin(self) -> None:
        self._id: t.Optional[str] = None
        self._type = ""
        self._data: t.List[str] = []

    def _line(self, line: str) -> t.Optional[Frame]:
        if line == "":
            frame = Frame(self._id, self._type or "message", "\n".join(self._data))
            is_empty = self._id is None and not self._data
            self._begin()
            return None if is_empty else frame
        field, _, value = line.partition(":")
        value = value[1:] if value.startswith(" ") else value
        if field == "data":
            self._data.append(value)
        elif field == "event":
            self._type = value
        elif field == "id" and "\0" not in value:
            self._id = value
        return None


class Source(t.NamedTuple):
    path: str
    #: The first `Last-Event-ID`.
    after: t.Optional[str]
    #: Whether the stream is complete when the service ends a connection.
    is_done: t.Callable[[], bool]


StateHandler = t.Callable[[str], None]


def read_events(
    http: Http,
    source: Source,
    options: Options,
    on_state: StateHandler,
    cancellation: Cancellation,
) -> t.Iterator[Frame]:
    """
    Reads a stream to its end, and reconnects as needed, each time after the last complete frame. Raises errors that are not
    transient. `max_retries` limits consecutive failed connections.
    """
    last = source.after
    failures_max = options.get("max_retries", _failures_max)
    failures = 0
    on_state("connecting")
    while True:
        began, frames = time.monotonic(), 0
        broken: t.Optional[CadreError] = None
        headers = dict(options.get("headers", {}))
        if last is not None:
            headers["last-event-id"] = last
        request = Request("GET", source.path, accept="text/event-stream")
        asked: Options = {**options, "max_retries": 0, "headers": headers}
        response: t.Optional[Response] = None
        try:
            response = http.open(request, asked, cancellation)
            on_state("open")
            reader = FrameReader()
            for piece in response.iter_bytes(_silence_max_seconds):
                for frame in reader.read(piece):
                    frames += 1
                    if frame.id is not None:
                        last = frame.id
                    if frame.data != "":
                        yield frame
                    if source.is_done():
                        return
        except CadreError as error:
            if cancellation.is_canceled:
                return
            if not _is_transient(error):
                raise
            broken = error
        finally:
            if response is not None:
                response.close()
        if source.is_done():
            return
        # Every connection begins with a snapshot, so only further frames are progress.
        was_good = frames > 1 or time.monotonic() - began > _good_connection_seconds
        failures = 0 if was_good else failures + 1
        if failures > failures_max:
            raise broken or APIConnectionError(f"The service ended {failures} connections of the stream in a row.")
        on_state("reconnecting")
        first = _reconnect_seconds["again" if failures == 0 else "first"]
        try:
            cancellation.pause(backoff(max(1, failures), first, _reconnect_seconds["longest"]))
        except Canceled:
            return


class _Stream:
    """The base of streams: each is read once, and can be closed from another thread."""

    def __init__(self) -> None:
        self._cancellation = Cancellation()
        self._lock = threading.Lock()
        self._is_begun = False

    def close(self) -> None:
        """Ends the loop that reads the stream, also from another thread."""
        self._cancellation.cancel()

    def _begin(self) -> None:
        with self._lock:
            if self._is_begun:
                raise CadreError("A stream can only be read once. Create another stream.")
            self._is_begun = True


class TaskStream(_Stream):
    """
    Events of a task, to iterate over once. It reconnects as needed, so that every stored event occurs exactly once; it ends
    with the task.
    """

    def __init__(
        self,
        http: Http,
        begin: t.Callable[[], str],
        read: t.Callable[[str], Task],
        after: int,
        options: t.Optional[Options],
        on_state: t.Optional[StateHandler],
    ) -> None:
        super().__init__()
        self._http = http
        self._open = begin
        self._read = read
        self._after = after
        self._options: Options = {name: value for name, value in (options or {}).items() if name != "idempotency_key"}  # type: ignore[assignment]
        self._on_state = on_state or (lambda _: None)
        self._task_id: t.Optional[str] = None

    def __enter__(self) -> TaskStream:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __iter__(self) -> t.Iterator[TaskStreamEvent]:
        self._begin()
        return self._events()

    def text(self) -> t.Iterator[str]:
        """
        Reads the stream, and yields pieces of the answer's text as it is written. Together they are the whole text, even if it
        began before the stream.
        """
        had: t.Dict[str, int] = {}
        for event in self:
            if event.type not in ("message.delta", "message.snapshot", "message.completed"):
                continue
            data, message_id = event.data, event.data["message_id"]
            if event.type == "message.delta":
                piece = data["text"]
            else:
                # Text from before the stream comes with the whole message.
                whole = data["text"] if event.type == "message.snapshot" else data["content"]
                piece = (whole or "")[had.get(message_id, 0) :]
            had[message_id] = had.get(message_id, 0) + len(piece)
            if piece:
                yield piece

    def final_task(self) -> Task:
        """Reads the stream to its end if it was not read, and returns the ended task, also if it failed."""
        if not self._is_begun:
            for _ in self:
                pass
        if self._task_id is None:
            raise CadreError("The stream ended before its first event.")
        return self._read(self._task_id)

    def _events(self) -> t.Iterator[TaskStreamEvent]:
        last, is_done = self._after, False
        source = Source(self._open(), str(last) if last > 0 else None, lambda: is_done)
        for frame in read_events(self._http, source, self._options, self._on_state, self._cancellation):
            event = TaskStreamEvent(json.loads(frame.data))
            self._task_id = event.task_id
            if frame.id is not None:
                if event.sequence <= last:
                    continue
                last = event.sequence
            if event.type in _final_events:
                is_done = True
            # If the task had already ended, there may be no further events.
            if event.type == "task.snapshot" and is_finished(event.data["task"]["status"]) and event.sequence <= last:
                is_done = True
            yield event


class ProjectStream(_Stream):
    """
    Events of all tasks of a project, each once and in order within a task; reconnects as needed. It does not end: leave the
    loop, or close it. A new stream with `last_event_id` continues after it.
    """

    def __init__(
        self,
        http: Http,
        path: str,
        last_event_id: t.Optional[str],
        options: t.Optional[Options],
        on_state: t.Optional[StateHandler],
    ) -> None:
        super().__init__()
        #: The id of the last handled event: a reader that stops while it handles an event gets it again.
        self.last_event_id = last_event_id
        self._http = http
        self._path = path
        self._options: Options = options or {}
        self._on_state = on_state or (lambda _: None)

    def __enter__(self) -> ProjectStream:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __iter__(self) -> t.Iterator[ProjectStreamEvent]:
        self._begin()
        return self._events()

    def _events(self) -> t.Iterator[ProjectStreamEvent]:
        source = Source(self._path, self.last_event_id, lambda: False)
        for frame in read_events(self._http, source, self._options, self._on_state, self._cancellation):
            yield ProjectStreamEvent(json.loads(frame.data))
            if frame.id is not None:
                self.last_event_id = frame.id


def _is_transient(error: CadreError) -> bool:
    """Whether another connection may succeed."""
    if isinstance(error, APIError):
        return error.status in (408, 429) or error.status >= 500
    return isinstance(error, APIConnectionError)
