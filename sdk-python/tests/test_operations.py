"""Every operation of the contract has a method, which sends its request."""

from __future__ import annotations

import inspect
import json
import typing as t
import unittest

from cadre import Cadre
from cadre.paging import PagedList
from cadre.transport import Response

from .support import Answer, FakeService, required


class Operations(unittest.TestCase):
    def test_every_operation_is_a_method_that_sends_it(self) -> None:
        operations: t.List[t.Dict[str, t.Any]] = json.loads(required("CADRE_TEST_OPERATIONS"))
        self.assertGreater(len(operations), 100)
        answer = {"pagination": {"total": 0, "limit": 1, "offset": 0, "has_more": False}}
        with FakeService(Answer(200, answer)) as fake, fake.client() as client:
            known = self.methods_of(client) | self.methods_of(client.project("id0"), "project.")
            for operation in operations:
                with self.subTest(operation["id"]):
                    known.discard(self.check(client, fake, operation))
        self.assertEqual(known, set(), "methods of no operation")

    def check(self, client: Cadre, fake: FakeService, operation: t.Dict[str, t.Any]) -> str:
        holder = client.project("id0") if operation["isOfProject"] else client
        method = getattr(getattr(holder, operation["group"]), operation["name"])
        ids = [f"id{number + (1 if operation['isOfProject'] else 0)}" for number in range(len(operation["ids"]))]
        parameters = inspect.signature(method).parameters
        # What is needed is given; what the service makes of it is tested elsewhere.
        needed = {
            name: "x"
            for name, parameter in parameters.items()
            if parameter.kind is inspect.Parameter.KEYWORD_ONLY and parameter.default is inspect.Parameter.empty
        }
        content = [b"x"] if operation["isUpload"] else []
        if operation["member"]:
            fake.answers[0].body[operation["member"]] = []
        del fake.requests[:]
        given = method(*ids, *content, **needed)
        if isinstance(given, PagedList):
            given.page()
        elif isinstance(given, Response):
            given.read()
        if operation["isUrl"]:
            self.assertEqual(given.partition("?")[0], f"{client.base_url}{operation['path']}")
        else:
            sent, path, headers, body = fake.requests[0]
            self.assertEqual((sent, path.partition("?")[0]), (operation["method"], operation["path"]))
            self.assertEqual("idempotency-key" in headers, operation["isOnce"])
            self.assertEqual(bool(headers.get("content-type")), operation["hasBody"] or bool(content))
            if operation["hasBody"] and not operation["isForm"]:
                self.assertEqual(set(json.loads(body)), set(operation["required"]))
        options = {"options", *operation["ids"], *(["content"] if content else [])}
        taken = {name.rstrip("_") for name in parameters} - options
        self.assertEqual(taken, set(operation["members"]))
        return f"{'project.' if operation['isOfProject'] else ''}{operation['group']}.{operation['name']}"

    def methods_of(self, holder: t.Any, prefix: str = "") -> t.Set[str]:
        written = {"wait_until", "stream", "run", "wait", "serve", "verify"}
        return {
            f"{prefix}{group}.{name}"
            for group, resource in vars(holder).items()
            if not group.startswith("_") and hasattr(resource, "_http")
            for name, _ in inspect.getmembers(resource, callable)
            if not name.startswith("_") and name not in written
        }
