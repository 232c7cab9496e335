"""Tools that a program serves."""

from __future__ import annotations

import contextlib
import json
import threading
import typing as t
import unittest

from cadre import APIError, AuthenticationError, NotFoundError, ServedToolCall

from .support import running_agent, service_client


class NoOrder(Exception):
    code = "no_order"


class Serving(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.client = service_client()
        project = cls.client.project(cls.client.projects.create(name="python-served").id)
        shared: t.Any = {"description": "x", "kind": "client"}
        schema = {"type": "object", "required": ["refund"]}
        project.tools.create(name="refund", safety="keyed", result_schema=schema, **shared)
        project.tools.create(name="look_up", safety="safe", **shared)
        project.tools.create(name="unsure", **shared)
        config: t.Any = {"model": "builtin/script", "tools": ["refund", "look_up", "unsure"], "max_concurrent_tasks": 100}
        cls.agent_id = project.agents.create(name="cashier", config=config).id
        project.agents.wait_until(cls.agent_id, "running")
        cls.project = project

    def ask(self, name: str, arguments: t.Any) -> str:
        call = {"id": "call_0", "name": name, "arguments": arguments}
        return json.dumps([{"tool_calls": [call]}, {"text": "{{tool_result}}"}])

    @contextlib.contextmanager
    def served(self, handlers: t.Mapping[str, t.Any], **options: t.Any) -> t.Iterator[threading.Event]:
        stop = threading.Event()
        failed: t.List[BaseException] = []

        def serve() -> None:
            try:
                self.project.tools.serve(handlers, stop=stop, concurrency=2, **options)
            except BaseException as error:  # noqa: BLE001
                failed.append(error)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield stop
        finally:
            stop.set()
            thread.join(60)
            self.assertFalse(thread.is_alive())
            self.assertEqual(failed, [])

    def test_they_are_called_with_their_arguments_and_the_model_reads_what_they_give_or_raise(self) -> None:
        seen: t.List[ServedToolCall] = []

        def refund(arguments: t.Any, call: ServedToolCall) -> t.Any:
            seen.append(call)
            return {"refund": f"re_{arguments['order']}"}

        def look_up(arguments: t.Any, call: ServedToolCall) -> t.Any:
            raise NoOrder("There is no such order.")

        with self.served({"refund": refund, "look_up": look_up}):
            paid = self.project.tasks.run(self.agent_id, input=self.ask("refund", {"order": "4711"})).final_task()
            self.assertEqual(paid.output.content, '{"refund":"re_4711"}')
            self.assertEqual((seen[0].task_id, seen[0].attempt, seen[0].idempotency_key), (paid.id, 1, f"{paid.id}:1"))
            missing = self.project.tasks.run(self.agent_id, input=self.ask("look_up", {})).final_task()
            self.assertEqual(missing.output.content, "There is no such order.")
            self.assertEqual(self.project.tool_calls.list(task_id=missing.id).page().items[0].error.code, "no_order")

    def test_a_result_that_its_schema_refuses_fails_with_what_was_wrong(self) -> None:
        errors: t.List[BaseException] = []
        handlers = {"refund": lambda _arguments, _call: {"nothing": True}}
        with self.served(handlers, on_error=lambda error, _call: errors.append(error)):
            task = self.project.tasks.run(self.agent_id, input=self.ask("refund", {})).final_task()
        self.assertRegex(task.output.content, "^The result of the tool was refused: .*'refund'")
        self.assertTrue(any(isinstance(one, APIError) and one.code == "invalid_tool_result" for one in errors))

    def test_a_result_that_cannot_be_sent_fails_its_call_and_serving_goes_on(self) -> None:
        results = iter([{1, 2}, float("nan"), "a\0b", "x" * 600_000, None])
        handlers = {"unsure": lambda _arguments, _call: next(results)}
        with self.served(handlers):
            for text in ("not JSON", "not JSON", "U\\+0000", "at most", "^null$"):
                task = self.project.tasks.run(self.agent_id, input=self.ask("unsure", {})).final_task()
                self.assertRegex(task.output.content, text)

    def test_an_error_with_characters_that_cannot_be_stored_is_told_without_them(self) -> None:
        def unsure(arguments: t.Any, call: ServedToolCall) -> t.Any:
            raise NoOrder("no\0 order \ud800")

        with self.served({"unsure": unsure}):
            task = self.project.tasks.run(self.agent_id, input=self.ask("unsure", {})).final_task()
        self.assertEqual(task.output.content, "no order ?")

    def test_serving_ends_with_calls_under_way_done_and_those_of_a_canceled_task_are_told(self) -> None:
        started = threading.Event()
        calls: t.List[ServedToolCall] = []

        def unsure(arguments: t.Any, call: ServedToolCall) -> t.Any:
            calls.append(call)
            started.set()
            call.canceled.wait(60)

        # A lease of ten seconds is extended after three: the heartbeat learns of the cancellation.
        with self.served({"unsure": unsure}, lease_seconds=10, grace_seconds=60) as stop:
            task = self.project.tasks.create(self.agent_id, input=self.ask("unsure", {}))
            self.assertTrue(started.wait(60))
            stop.set()
            self.project.tasks.cancel(task.id)
        self.assertTrue(calls[0].canceled.is_set())
        self.assertEqual(self.project.tool_calls.get(calls[0].id).status, "canceled")

    def test_serving_ends_with_the_refusal_where_the_credential_may_not_serve(self) -> None:
        handlers = {"refund": lambda _arguments, _call: 1}
        stranger = service_client(api_key="cadre_00000000000000000000000000000000")
        with self.assertRaises(AuthenticationError):
            stranger.project(self.project.id).tools.serve(handlers)
        with self.assertRaises(NotFoundError):
            self.client.project("proj_999999").tools.serve(handlers)

    def test_leases_are_extended_while_handlers_work_so_that_a_long_call_is_made_once(self) -> None:
        made: t.List[ServedToolCall] = []
        release = threading.Event()

        def look_up(arguments: t.Any, call: ServedToolCall) -> t.Any:
            made.append(call)
            release.wait(120)
            return "found"

        with self.served({"look_up": look_up}, lease_seconds=10):
            task = self.project.tasks.create(self.agent_id, input=self.ask("look_up", {}))
            first = later = None
            while first is None or later is None:
                call = next(iter(self.project.tool_calls.list(task_id=task.id)), None)
                if call is not None and call.lease_until is not None:
                    first = first or call.lease_until
                    later = call.lease_until if call.lease_until > first else None
                release.wait(0.2)
            release.set()
            self.assertEqual(self.project.tasks.wait(task.id, timeout_seconds=60).output.content, "found")
        self.assertEqual([call.attempt for call in made], [1])
