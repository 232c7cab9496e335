"""The client against a service."""

from __future__ import annotations

import io
import json
import time
import unittest

import cadre.models
from cadre import (
    BadRequestError,
    Cadre,
    ConflictError,
    NotFoundError,
    PermissionDeniedError,
    PreconditionFailedError,
    WaitTimeoutError,
    verify_webhook,
)

from .support import required, running_agent, service_client

ECHO = {"model": "builtin/echo"}


class Service(unittest.TestCase):
    client: Cadre

    @classmethod
    def setUpClass(cls) -> None:
        cls.client = service_client()
        cls.project, cls.agent_id = running_agent(cls.client, "python-service", ECHO)

    def test_a_task_is_created_streamed_and_waited_for(self) -> None:
        run = self.project.tasks.run(self.agent_id, input="Hello, agent")
        types = [event.type for event in run]
        self.assertEqual((types[0], types[-1]), ("task.snapshot", "task.completed"))
        task = run.final_task()
        self.assertIsInstance(task, cadre.models.Task)
        self.assertEqual((task.status, task.output.content), ("completed", "Hello, agent"))
        self.assertEqual(self.project.tasks.wait(task.id, timeout_seconds=60), task)
        text = "".join(self.project.tasks.run(self.agent_id, input="One two").text())
        self.assertTrue("One two".startswith(text))

    def test_data_of_a_schema_are_plain(self) -> None:
        schema = {"type": "object", "properties": {"total": {"type": "number"}}, "required": ["total"]}
        task = self.project.tasks.create(self.agent_id, input='{"total":12.5}', output_schema=schema, wait=60)
        self.assertEqual(task.output.data, {"total": 12.5})
        self.assertEqual(task.output_schema, schema)
        self.assertIsNone(self.project.tasks.create(self.agent_id, input="x", wait=60).output.data)

    def test_lists_of_both_families_are_iterated_over_to_their_end(self) -> None:
        project = self.client.project(self.client.projects.create(name="python-lists").id)
        for name in ("a1", "a2", "a3"):
            project.agents.create(name=name)
        self.assertEqual([agent.name for agent in project.agents.list(limit=2, sort="name")], ["a1", "a2", "a3"])
        for number in range(3):
            self.client.projects.create(name=f"python-paged-{number}")
        listed = self.client.projects.list(limit=2, search="python-paged", sort="name", order="asc")
        self.assertEqual([one.name for one in listed], ["python-paged-0", "python-paged-1", "python-paged-2"])
        page = listed.page()
        self.assertEqual((page.total, len(page.items), page.has_next_page()), (3, 2, True))
        last = page.next_page()
        assert last is not None
        self.assertEqual((len(last.items), last.next_page()), (1, None))
        self.assertEqual(len(listed.to_list(max_items=2)), 2)

    def test_a_list_of_tasks_goes_on_behind_its_last_task_however_many_come_before_it(self) -> None:
        project = self.client.project(self.client.projects.create(name="python-cursors").id)
        agent_id = project.agents.create(name="echo", config={"model": "builtin/echo"}).id

        def give() -> str:
            return str(project.tasks.create(agent_id, input="x", wait=60).id)

        made = [give() for _ in range(4)]
        found = []
        for page in project.tasks.list(limit=1, offset=1).pages():
            found += [task.id for task in page.items]
            give()
        self.assertEqual(found, made[2::-1])

    def test_errors_have_the_class_of_their_status_and_say_what_the_service_says(self) -> None:
        with self.assertRaises(NotFoundError) as missing:
            self.project.agents.get("agent_none")
        self.assertEqual(missing.exception.code, "agent_not_found")
        self.assertTrue(missing.exception.request_id)
        with self.assertRaises(BadRequestError) as invalid:
            self.project.agents.create(name="", config={"temperature": 9})
        self.assertEqual(sorted(issue.field for issue in invalid.exception.issues), ["config.temperature", "name"])
        with self.assertRaises(BadRequestError) as of_family_b:
            self.client.projects.list(limit=0).page()
        self.assertEqual([issue.field for issue in of_family_b.exception.issues], ["limit"])
        with self.assertRaises(ConflictError):
            self.project.agents.create(name="agent")
        key = self.client.api_keys.create(name="reader", scopes=["agents:read"]).key
        with self.assertRaises(PermissionDeniedError) as refused:
            service_client(api_key=key).project(self.project.id).agents.start(self.agent_id)
        self.assertEqual(refused.exception.required_scopes, ["agents:write"])

    def test_the_head_of_an_answer_comes_with_it_and_its_revision_guards_a_change(self) -> None:
        agent = self.project.agents.create(name="revised", config=ECHO)
        read = self.project.agents.get(agent.id)
        assert read.last_response is not None and read.last_response.etag is not None
        self.assertEqual(read.last_response.status, 200)
        self.assertTrue(read.last_response.request_id)
        etag = read.last_response.etag
        self.project.agents.update(agent.id, config=read.config, description="one", options={"if_match": etag})
        with self.assertRaises(PreconditionFailedError):
            self.project.agents.update(agent.id, description="two", options={"if_match": etag})

    def test_waiting_for_what_does_not_come_ends_in_its_time(self) -> None:
        began = time.monotonic()
        with self.assertRaises(WaitTimeoutError):
            self.project.agents.wait_until(self.agent_id, "stopped", timeout_seconds=0.3)
        self.assertLess(time.monotonic() - began, 10)

    def test_a_task_that_waits_for_a_person_is_given_back_where_that_is_asked(self) -> None:
        config = {"model": "builtin/script", "tools": ["run_javascript"], "tool_policies": {"run_javascript": "ask"}}
        project, agent_id = running_agent(self.client, "python-approvals", config)
        call = {"id": "call_0", "name": "run_javascript", "arguments": {"code": "6 * 7"}}
        asked = project.tasks.create(agent_id, input=json.dumps([{"tool_calls": [call]}, {"text": "{{tool_result}}"}]))
        waiting = project.tasks.wait(asked.id, or_waiting=True, timeout_seconds=60)
        self.assertEqual(waiting.status, "waiting")
        (approval,) = project.approvals.list(status="pending")
        project.approvals.resolve(approval.id, decision="approve")
        self.assertEqual(project.tasks.wait(asked.id, timeout_seconds=60).output.content, "42")

    def test_files_go_up_from_bytes_or_a_file_and_come_down_in_pieces(self) -> None:
        content = bytes(range(256)) * 4000
        for given in (content, io.BytesIO(content)):
            file = self.project.files.upload(given, name="bytes.bin")
            self.assertEqual(file.bytes, len(content))
            with self.project.files.content(file.id) as response:
                self.assertEqual(b"".join(response.iter_bytes()), content)

    def test_any_path_can_be_asked(self) -> None:
        hello = self.client.request("GET", "/api/v1/hello", query={"name": "you"})
        self.assertEqual((hello.message, hello["message"]), ("Hello, you!", "Hello, you!"))
        with self.client.open("GET", "/api/v1/docs") as response:
            self.assertEqual(json.loads(response.read())["openapi"], "3.0.3")
        self.assertEqual(self.client.url("/a", {"b": True}), f"{self.client.base_url}/a?b=true")

    def test_what_the_service_signs_is_verified(self) -> None:
        request = json.loads(required("CADRE_TEST_SIGNED"))
        event = verify_webhook(request["body"], request["headers"], request["secret"])
        self.assertIsInstance(event, cadre.models.AgentFailedEvent)
        self.assertEqual(event.data.agent.id, request["agent_id"])
