"""Requests are tried again where that is safe, and only there."""

from __future__ import annotations

import io
import threading
import time
import unittest

from cadre import APIError, APITimeoutError, CadreError, ConflictError, InternalServerError, RateLimitError
from cadre.errors import Canceled
from cadre.resource import Request
from cadre.transport import Cancellation

from .support import GOOD, Answer, FakeService

UNAVAILABLE = Answer(503, {"error": {"code": "service_unavailable", "message": "later"}})
CUT = Answer(0, fault="cut")
FAULTS = {
    "status 408": Answer(408),
    "status 429": Answer(429),
    "status 500": Answer(500),
    "status 503": UNAVAILABLE,
    "a lost connection": CUT,
    "a head that breaks off": GOOD._replace(fault="head"),
    "an answer that breaks off": GOOD._replace(fault="half"),
}


class Retries(unittest.TestCase):
    def test_a_read_is_repeated(self) -> None:
        for name, fault in FAULTS.items():
            with self.subTest(name), FakeService(fault, GOOD) as fake:
                self.assertEqual(fake.client().project(1).agents.get("agent_1").id, "agent_1")
                self.assertEqual(len(fake.requests), 2)

    def test_a_creation_is_repeated_with_the_same_key(self) -> None:
        for name, fault in FAULTS.items():
            with self.subTest(name), FakeService(fault, fault, GOOD) as fake:
                agents = fake.client().project(1).agents
                agents.create(name="a")
                agents.create(name="a")
                keys = [headers.get("idempotency-key") for _, _, headers, _ in fake.requests]
                self.assertEqual(len(keys), 4)
                self.assertRegex(str(keys[0]), r"^[\x21-\x7e]{16,255}$")
                self.assertEqual(len(set(keys[:3])), 1)
                self.assertNotEqual(keys[3], keys[0])

    def test_what_the_service_would_do_twice_is_repeated_only_where_it_was_refused(self) -> None:
        for name, fault in FAULTS.items():
            is_refused = fault.status == 429
            with self.subTest(name), FakeService(fault, GOOD) as fake:
                make = lambda: fake.client().api_keys.create(name="k", scopes=["read"])  # noqa: E731
                if is_refused:
                    make()
                else:
                    self.assertRaises(CadreError, make)
                self.assertEqual(len(fake.requests), 2 if is_refused else 1)
                self.assertNotIn("idempotency-key", fake.requests[0][2])

    def test_refusals_are_final(self) -> None:
        for status in (400, 401, 403, 404, 409, 412, 422):
            with self.subTest(status), FakeService(Answer(status), GOOD) as fake, self.assertRaises(APIError) as raised:
                fake.client().project(1).agents.get("a")
            self.assertEqual((raised.exception.status, raised.exception.attempts, len(fake.requests)), (status, 1, 1))

    def test_a_conflict_with_an_earlier_try_that_is_still_at_work_is_waited_out(self) -> None:
        details = {"conflicting_field": "Idempotency-Key"}
        pending = Answer(409, {"error": {"code": "resource_conflict", "message": "running", "details": details}})
        with FakeService(CUT, pending, GOOD) as fake:
            self.assertEqual(fake.client().project(1).agents.create(name="a").id, "agent_1")
        real = Answer(409, {"error": {"code": "agent_conflict", "message": "there is one"}})
        with FakeService(real) as fake, self.assertRaises(ConflictError):
            fake.client().project(1).agents.create(name="a")

    def test_tries_end_and_the_last_error_says_how_many_there_were(self) -> None:
        with FakeService(UNAVAILABLE) as fake:
            agents = fake.client().project(1).agents
            with self.assertRaises(InternalServerError) as raised:
                agents.get("a", options={"max_retries": 1})
            self.assertEqual((raised.exception.attempts, raised.exception.code), (2, "service_unavailable"))
            self.assertEqual(len(fake.requests), 2)
            self.assertRaises(InternalServerError, agents.get, "a", options={"max_retries": 0})
            self.assertEqual(len(fake.requests), 3)

    def test_a_service_that_says_when_to_come_back_is_not_asked_before_nor_waited_for_beyond_a_minute(self) -> None:
        with FakeService(Answer(429, {}, {"retry-after": "2"}), GOOD) as fake:
            began = time.monotonic()
            fake.client().project(1).agents.get("a")
            self.assertGreaterEqual(time.monotonic() - began, 1.99)
        hour = Answer(429, {"error": {"code": "rate_limit_exceeded", "message": "slow", "retry_after": 3599}})
        with FakeService(hour, GOOD) as fake, self.assertRaises(RateLimitError) as raised:
            fake.client().project(1).agents.get("a")
        self.assertEqual(raised.exception.retry_after, 3599)
        spent = Answer(429, {"error": {"code": "budget_exceeded", "message": "spent"}})
        with FakeService(spent, GOOD) as fake, self.assertRaises(RateLimitError):
            fake.client().project(1).tasks.create("a", input="x")
        self.assertEqual(len(fake.requests), 1)

    def test_silence_ends_in_time_also_in_the_middle_of_an_answer(self) -> None:
        with FakeService(Answer(0, fault="silence")) as fake:
            client = fake.client(timeout_seconds=0.2, max_retries=1)
            self.assertRaises(APITimeoutError, client.project(1).agents.get, "a")
            self.assertEqual(len(fake.requests), 2)

    def test_a_request_under_way_is_ended_from_another_thread(self) -> None:
        with FakeService(Answer(0, fault="silence")) as fake:
            cancellation, ended = Cancellation(), []
            client = fake.client()

            def read() -> None:
                try:
                    client._http.json(Request("GET", "/api/v1/status"), None, cancellation)
                except Canceled as error:
                    ended.append(error)

            thread = threading.Thread(target=read)
            thread.start()
            while not fake.requests:
                thread.join(0.01)
            cancellation.cancel()
            thread.join(10)
            self.assertEqual(len(ended), 1)

    def test_what_is_read_from_a_file_is_sent_once(self) -> None:
        with FakeService(UNAVAILABLE, GOOD) as fake:
            self.assertRaises(InternalServerError, fake.client().project(1).files.upload, io.BytesIO(b"abc"), name="a")
            self.assertEqual(len(fake.requests), 1)
        with FakeService(UNAVAILABLE, GOOD) as fake:
            fake.client().project(1).files.upload(b"abc", name="a")
            self.assertEqual([body for _, _, _, body in fake.requests], [b"abc", b"abc"])
