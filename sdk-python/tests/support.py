"""What tests share: a service with scripted answers, and clients."""

from __future__ import annotations

import http.server
import json
import os
import threading
import typing as t

from cadre import Cadre


class Answer(t.NamedTuple):
    status: int
    body: t.Any = {}
    headers: t.Mapping[str, str] = {}
    #: What happens instead of an answer: `cut`, `head` and `half` (a head or a body that breaks off), `silence`.
    fault: str = ""


GOOD = Answer(200, {"id": "agent_1"})


class FakeService:
    """A service that gives one answer after the other, the last for good."""

    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers)
        self.requests: t.List[t.Tuple[str, str, t.Dict[str, str], bytes]] = []
        self.connections = 0
        lock = threading.Lock()
        released = self._released = threading.Event()
        fake = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(self) -> None:
                super().setup()
                fake.connections += 1

            def log_message(self, *_: t.Any) -> None:
                pass

            def handle_any(self) -> None:
                length = int(self.headers.get("content-length") or 0)
                headers = {name.lower(): value for name, value in self.headers.items()}
                body = self.rfile.read(length)
                with lock:
                    fake.requests.append((self.command, self.path, headers, body))
                    answer = fake.answers.pop(0) if len(fake.answers) > 1 else fake.answers[0]
                if answer.fault == "silence":
                    released.wait()
                if answer.fault in ("cut", "silence"):
                    self.close_connection = True
                    return
                if answer.fault == "head":
                    self.wfile.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n")
                    self.close_connection = True
                    return
                content = json.dumps(answer.body).encode()
                self.send_response(answer.status)
                for name, value in {"content-type": "application/json; charset=utf-8", **answer.headers}.items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(content) + (100 if answer.fault == "half" else 0)))
                self.end_headers()
                self.wfile.write(content)
                if answer.fault == "half":
                    self.close_connection = True

            do_GET = do_POST = do_PUT = do_DELETE = handle_any

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> FakeService:
        return self

    def __exit__(self, *_: object) -> None:
        self._released.set()
        self._server.shutdown()
        self._server.server_close()

    def client(self, **options: t.Any) -> Cadre:
        return Cadre(**{"api_key": "key", "base_url": self.url, **options})


def service_client(**options: t.Any) -> Cadre:
    """A client of the service that the tests run against: `CADRE_BASE_URL` and `CADRE_API_KEY` name it."""
    return Cadre(**options)


def running_agent(client: Cadre, name: str, config: t.Mapping[str, t.Any]) -> t.Tuple[t.Any, str]:
    """A new project and an agent in it that runs."""
    project = client.project(client.projects.create(name=name).id)
    agent = project.agents.create(name="agent", config=t.cast(t.Any, config))
    project.agents.wait_until(agent.id, "running", timeout_seconds=60)
    return project, agent.id


def required(name: str) -> str:
    """A variable of the environment that a test cannot do without."""
    value = os.environ.get(name)
    if not value:
        raise RuntimeError(f"{name} is not set; these tests are run by e2e/python.")
    return value
