"""What holds without a service: frames, models, webhooks, connections."""

from __future__ import annotations

import ast
import base64
import hashlib
import hmac
import json
import pathlib
import random
import threading
import time
import typing as t
import unittest
from unittest import mock

import cadre
import cadre.models
from cadre import APIConnectionError, Cadre, CadreError, Model, WebhookVerificationError, verify_webhook
from cadre.model import _hints
from cadre.streams import Frame, FrameReader

from .support import GOOD, Answer, FakeService

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw3Vyo2yZ0Tmg="
BODY = json.dumps({"event": "task.failed", "timestamp": "2026-11-20T09:30:00.000Z", "data": {"note": "äöü €"}}, ensure_ascii=False)


def signed(key: bytes, body: str = BODY, at: t.Optional[float] = None, event: str = "evt_1") -> t.Dict[str, str]:
    moment = str(int(time.time() if at is None else at))
    digest = hmac.new(key, f"{event}.{moment}.{body}".encode(), hashlib.sha256).digest()
    signature = f"v1,{base64.b64encode(digest).decode()}"
    return {"Webhook-Id": event, "Webhook-Timestamp": moment, "Webhook-Signature": signature}


KEY = base64.b64decode(SECRET[len("whsec_") :])


class Webhooks(unittest.TestCase):
    def test_a_signed_request_is_read(self) -> None:
        event = verify_webhook(BODY, signed(KEY), SECRET)
        self.assertIsInstance(event, cadre.models.TaskFailedEvent)
        self.assertEqual(event.event, "task.failed")
        verify_webhook(BODY.encode(), signed(KEY), SECRET)

    def test_of_two_signatures_one_is_enough_and_other_versions_are_left_out(self) -> None:
        headers = signed(KEY)
        headers["Webhook-Signature"] = f"v1a,abc v1,AAAA {headers['Webhook-Signature']}"
        verify_webhook(BODY, headers, SECRET)

    def test_a_secret_that_is_no_base64_is_its_own_bytes(self) -> None:
        verify_webhook(BODY, signed("plain text ü".encode()), "plain text ü")
        verify_webhook(BODY, signed(b"whsec_abc"), "whsec_abc")

    def test_a_request_is_refused_that_is_changed_old_early_of_another_secret_or_not_signed(self) -> None:
        hour = 3600
        refused: t.List[t.Tuple[str, t.Dict[str, str], str]] = [
            (f"{BODY} ", signed(KEY), SECRET),
            (BODY, signed(b"another"), SECRET),
            (BODY, signed(KEY), "another"),
            (BODY, signed(KEY, at=time.time() - hour), SECRET),
            (BODY, signed(KEY, at=time.time() + hour), SECRET),
            (BODY, {**signed(KEY), "Webhook-Id": "evt_2"}, SECRET),
            (BODY, {**signed(KEY), "Webhook-Timestamp": "now"}, SECRET),
            (BODY, {**signed(KEY), "Webhook-Signature": "v1,"}, SECRET),
            (BODY, {**signed(KEY), "Webhook-Signature": "v1,%%%"}, SECRET),
            (BODY, {}, SECRET),
        ]
        for body, headers, secret in refused:
            with self.subTest(headers), self.assertRaises(WebhookVerificationError):
                verify_webhook(body, headers, secret)
        verify_webhook(BODY, signed(KEY, at=time.time() - hour), SECRET, tolerance_seconds=3700)

    def test_an_event_that_this_version_does_not_know_is_an_object_all_the_same(self) -> None:
        body = json.dumps({"event": "moon.landed", "timestamp": "2026-11-20T09:30:00.000Z", "data": {"on": "time"}})
        event = verify_webhook(body, signed(KEY, body), SECRET)
        self.assertEqual((event.event, event.data["on"]), ("moon.landed", "time"))


class Frames(unittest.TestCase):
    TEXT = ": hello\r\nid: 1\r\nevent: a\r\ndata: one\r\ndata: zwölf\r\n\r\nid: 2\rdata:two\r\r\n\ndata\n\nid: 3\n\nretry: 5\n\ndata: cut"
    FRAMES = [Frame("1", "a", "one\nzwölf"), Frame("2", "message", "two"), Frame(None, "message", ""), Frame("3", "message", "")]

    def test_a_stream_is_read_in_pieces_of_any_size(self) -> None:
        content = self.TEXT.encode()
        chance = random.Random(4711)
        for _ in range(300):
            reader, found, at = FrameReader(), [], 0
            while at < len(content):
                end = at + chance.randint(1, 12)
                found.extend(reader.read(content[at:end]))
                at = end
            self.assertEqual(found, self.FRAMES)


class Models(unittest.TestCase):
    def test_members_are_attributes_and_items_and_models_below_have_their_class(self) -> None:
        task = cadre.models.Task({"id": "task_1", "status": "completed", "output": {"content": "x", "data": {"a": 1}}, "later": {"b": 2}})
        self.assertEqual((task.id, task["status"], task.output.content), ("task_1", "completed", "x"))
        self.assertIsInstance(task.output, Model)
        self.assertEqual(task.output.data, {"a": 1})
        self.assertEqual(task.later, {"b": 2}, "what the contract does not name is kept")
        self.assertIsNone(task.error, "what an answer leaves out is None")
        self.assertIn("later", task)
        self.assertNotIn("error", task)
        with self.assertRaises(AttributeError):
            task.nothing_of_that_name
        self.assertEqual(task.to_dict()["output"], {"content": "x", "data": {"a": 1}})
        self.assertEqual(task, cadre.models.Task(task.to_dict()))

    def test_the_types_of_all_members_can_be_resolved(self) -> None:
        names = [name for name in cadre.models.__all__ if isinstance(getattr(cadre.models, name), type)]
        for name in names:
            self.assertTrue(_hints(getattr(cadre.models, name)), name)
        self.assertGreater(len(names), 150)

    def test_the_package_is_python_3_9(self) -> None:
        package = pathlib.Path(cadre.__file__).parent
        files = list(package.rglob("*.py"))
        self.assertGreater(len(files), 10)
        for file in files:
            ast.parse(file.read_text("utf-8"), str(file), feature_version=(3, 9))


class Connections(unittest.TestCase):
    def test_a_connection_is_used_again_and_one_that_was_closed_is_not(self) -> None:
        with FakeService(GOOD) as fake, fake.client() as client:
            for _ in range(3):
                client.project(1).agents.get("agent_1")
            self.assertEqual(fake.connections, 1)
        with FakeService(GOOD._replace(headers={"connection": "close"})) as fake, fake.client(max_retries=0) as client:
            for _ in range(3):
                client.project(1).agents.get("agent_1")
            self.assertEqual(fake.connections, 3)

    def test_threads_share_a_client(self) -> None:
        with FakeService(GOOD) as fake, fake.client() as client:
            found: t.List[str] = []
            work = lambda: found.append(client.project(1).agents.get("agent_1").id)  # noqa: E731
            threads = [threading.Thread(target=work) for _ in range(16)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(found, ["agent_1"] * 16)

    def test_a_proxy_of_the_environment_is_asked_and_left_out_where_it_says_so(self) -> None:
        with FakeService(GOOD) as proxy:
            environment = {"http_proxy": proxy.url, "no_proxy": ""}
            with mock.patch.dict("os.environ", environment), Cadre(api_key="k", base_url="http://cadre.example") as client:
                client.project(1).agents.get("a")
            self.assertEqual(proxy.requests[0][1], "http://cadre.example/api/v1/projects/1/agents/a")
            with FakeService(GOOD) as fake, mock.patch.dict("os.environ", {**environment, "no_proxy": "127.0.0.1"}):
                fake.client().project(1).agents.get("a")
                self.assertEqual(len(fake.requests), 1)

    def test_an_unreachable_server_is_a_connection_error_that_says_why(self) -> None:
        with self.assertRaisesRegex(APIConnectionError, "refused"):
            Cadre(base_url="http://127.0.0.1:1", max_retries=0).service.status()

    def test_a_redirect_does_not_get_the_api_key(self) -> None:
        with FakeService(GOOD) as other, FakeService(Answer(303, {}, {"location": f"{other.url}/stolen"})) as fake:
            with self.assertRaisesRegex(CadreError, "Set base_url to that address"):
                fake.client().service.status()
            self.assertEqual(other.requests, [])

    def test_who_asks_is_said_by_a_key_by_a_token_that_may_be_new_each_time_or_by_neither(self) -> None:
        with FakeService(GOOD) as fake:
            made = iter(range(1, 9))
            fake.client().user.get()
            Cadre(base_url=fake.url, token=lambda: f"token-{next(made)}").user.get()
            Cadre(base_url=fake.url, api_key=None, headers={"X-Organization-ID": "org_1"}).user.get()
            names = ("x-api-key", "authorization", "x-organization-id")
            self.assertEqual(
                [tuple(headers.get(name) for name in names) for _, _, headers, _ in fake.requests],
                [("key", None, None), (None, "Bearer token-1", None), (None, None, "org_1")],
            )

    def test_what_is_logged_is_no_secret(self) -> None:
        with FakeService(Answer(503), GOOD) as fake, self.assertLogs("cadre", "DEBUG") as logged:
            fake.client(api_key="cadre_secret").project(1).agents.get("agent_1")
        self.assertGreaterEqual(len(logged.output), 3)
        self.assertNotIn("cadre_secret", "\n".join(logged.output))

    def test_the_use_of_a_part_of_the_api_that_will_be_removed_is_logged_once(self) -> None:
        headers = {
            "deprecation": "@1830297600",
            "sunset": "Tue, 31 Dec 2030 23:59:59 GMT",
            "link": '<https://cadre.example/docs>; rel="deprecation"',
        }
        with FakeService(GOOD._replace(headers=headers)) as fake, self.assertLogs("cadre", "WARNING") as logged:
            agents = fake.client().project(1).agents
            agents.get("agent_1")
            agents.get("agent_2")
        self.assertEqual(
            logged.output,
            [
                "WARNING:cadre:GET /api/v1/projects/1/agents/agent_1 uses a part of the API that will be removed"
                " after Tue, 31 Dec 2030 23:59:59 GMT; see https://cadre.example/docs"
            ],
        )

    def test_ids_cannot_leave_their_place_in_a_path(self) -> None:
        with FakeService(GOOD) as fake:
            with self.assertRaisesRegex(CadreError, "project_id must be an id"):
                fake.client().projects.get("..")
            fake.client().projects.get("1/agents")
            self.assertEqual(fake.requests[0][1], "/api/v1/projects/1%2Fagents")

    def test_what_is_not_given_is_not_sent_and_none_is_null(self) -> None:
        with FakeService(GOOD) as fake:
            fake.client().project(1).agents.update("a", description=None)
            self.assertEqual(json.loads(fake.requests[0][3]), {"description": None})
            fake.client().project(1).tasks.create("a", input="x", wait=5)
            self.assertEqual(json.loads(fake.requests[1][3]), {"input": "x"})
            self.assertTrue(fake.requests[1][1].endswith("?wait=5"))
