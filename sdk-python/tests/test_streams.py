"""Streams over a line that is cut at random lose and repeat nothing. `CADRE_TEST_CUT_URL` names the line."""

from __future__ import annotations

import concurrent.futures
import json
import threading
import typing as t
import unittest

from cadre import NotFoundError, TaskStreamEvent

from .support import required, running_agent, service_client

#: Texts and tools for some seconds: some two hundred events, with text between them.
SCRIPT = json.dumps(
    [
        {
            "repeat": 12,
            "steps": [
                {"text": "Let me look at the clock once more, "},
                {"delay_ms": 60},
                {"text": "for it may have moved on. "},
                {"delay_ms": 60},
                {"tool_calls": [{"name": "current_time", "arguments": {}}]},
            ],
        },
        {"text": "It is time."},
    ]
)
CONFIG = {"model": "builtin/script", "tools": ["current_time"], "max_steps": 100}
LIVE = ("task.snapshot", "message.snapshot", "message.delta", "reasoning.delta")


class Streams(unittest.TestCase):
    def setUp(self) -> None:
        self.direct = service_client()
        self.cut = service_client(base_url=required("CADRE_TEST_CUT_URL"), max_retries=20)
        name = self._testMethodName[5:40].replace("_", "-").strip("-")
        self.project, self.agent_id = running_agent(self.direct, f"python-{name}", CONFIG)

    def kept(self, task_id: str) -> t.List[t.Dict[str, t.Any]]:
        return [event.to_dict() for event in self.project.tasks.events(task_id)]

    def test_a_task_stream_that_is_cut_loses_and_repeats_no_event(self) -> None:
        states: t.List[str] = []

        def watch() -> None:
            task_id = self.project.tasks.create(self.agent_id, input=SCRIPT).id
            stream = self.cut.project(self.project.id).tasks.stream(task_id, on_state=states.append)
            told = list(stream)
            kept = self.kept(task_id)
            self.assertGreater(len(kept), 50)
            self.assertEqual([event.to_dict() for event in told if event.type not in LIVE], kept)
            self.check_texts(told)
            self.assertEqual(stream.final_task().status, "completed")

        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            for done in [pool.submit(watch) for _ in range(4)]:
                done.result()
        self.assertIn("reconnecting", states)

    def check_texts(self, told: t.List[TaskStreamEvent]) -> None:
        """The text of a message from one connection is complete once the message is complete there."""
        shown: t.Dict[str, str] = {}
        complete = 0
        for event in told:
            data = event.data
            if event.type == "task.snapshot":
                shown.clear()
            elif event.type == "message.snapshot":
                shown[data["message_id"]] = data["text"]
            elif event.type == "message.delta":
                shown[data["message_id"]] = shown.get(data["message_id"], "") + data["text"]
            elif event.type == "message.completed":
                # A message that began and ended between two connections comes whole.
                self.assertEqual(shown.get(data["message_id"], data["content"]), data["content"])
                complete += 1
        self.assertGreater(complete, 10)

    def test_a_project_stream_that_is_cut_loses_and_repeats_no_event(self) -> None:
        ids: t.List[str] = []
        told: t.List[t.Tuple[str, int]] = []
        resumed: t.List[bool] = []
        ended = set()
        for event in self.cut.projects.stream(self.project.id):
            if event.type == "project.snapshot":
                resumed.append(event.data["resumed"])
                # The first snapshot stands before what happens from now on.
                if len(resumed) == 1:
                    ids = [self.project.tasks.create(self.agent_id, input=SCRIPT).id for _ in range(4)]
                continue
            if event.type == "agent.status":
                continue
            told.append((event.task_id, event.sequence))
            if event.type == "task.completed":
                ended.add(event.task_id)
            if len(ended) == 4:
                break
        for task_id in ids:
            kept = [(task_id, event["sequence"]) for event in self.kept(task_id)]
            self.assertEqual([one for one in told if one[0] == task_id], kept)
        self.assertEqual(resumed[0], False)
        self.assertTrue(all(resumed[1:]), "it was taken up where it was")
        self.assertGreater(len(resumed), 1)

    def test_what_is_created_over_a_line_that_breaks_is_created_once(self) -> None:
        cut = service_client(base_url=required("CADRE_TEST_WORSE_URL"), max_retries=20).project(self.project.id)
        make = lambda number: cut.tasks.create(self.agent_id, input=json.dumps([{"text": str(number)}])).id  # noqa: E731
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            made = list(pool.map(make, range(20)))
        self.assertEqual(sorted(task.id for task in self.project.tasks.list()), sorted(made))

    def test_a_stream_begins_after_what_its_reader_has_and_ends_with_the_task(self) -> None:
        task = self.project.tasks.create(self.agent_id, input='[{"text": "Hello"}]', wait=60)
        last = task.last_sequence
        rest = self.project.tasks.stream(task.id, after=last - 2)
        self.assertEqual(
            [(event.type == "task.snapshot", event.sequence) for event in rest],
            [(True, last), (False, last - 1), (False, last)],
        )
        nothing = self.project.tasks.stream(task.id, after=last)
        self.assertEqual([event.type for event in nothing], ["task.snapshot"])
        with self.assertRaises(NotFoundError):
            self.project.tasks.stream("task_none").final_task()

    def test_a_project_stream_goes_on_where_another_one_was_left(self) -> None:
        first: t.List[str] = []
        with self.direct.projects.stream(self.project.id) as stream:
            for event in stream:
                if event.type == "project.snapshot":
                    self.project.tasks.create(self.agent_id, input='[{"text": "Hello"}]')
                elif event.type != "agent.status":
                    first.append(f"{event.type} {event.sequence}")
                # Left in the middle of its third event, which is sent again.
                if event.sequence == 3:
                    break
        rest: t.List[str] = []
        for event in self.direct.projects.stream(self.project.id, last_event_id=stream.last_event_id):
            if event.type == "project.snapshot":
                self.assertTrue(event.data["resumed"])
            elif event.type != "agent.status":
                rest.append(f"{event.type} {event.sequence}")
            if event.type == "task.completed":
                break
        task = self.project.tasks.list().to_list()[0]
        self.assertEqual(rest[0], first[-1])
        self.assertEqual(first[:-1] + rest, [f"{one['type']} {one['sequence']}" for one in self.kept(task.id)])

    def test_a_stream_is_closed_from_another_thread(self) -> None:
        stream = self.direct.projects.stream(self.project.id)
        opened = threading.Event()

        def read() -> None:
            for _ in stream:
                opened.set()

        thread = threading.Thread(target=read)
        thread.start()
        self.assertTrue(opened.wait(30))
        stream.close()
        thread.join(10)
        self.assertFalse(thread.is_alive())
