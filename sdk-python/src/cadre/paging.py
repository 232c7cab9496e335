"""Lists that are asked for page by page."""

from __future__ import annotations

import typing as t

T = t.TypeVar("T")


class Page(t.Generic[T]):
    """Some entries of a list."""

    def __init__(self, fetch: t.Callable[[t.Mapping[str, t.Any]], t.Any], body: t.Any, member: str) -> None:
        self._fetch = fetch
        self._member = member
        #: The whole answer.
        self.body = body
        self.items: t.List[T] = body[member]

    @property
    def total(self) -> int:
        """All entries that match, on this page or another."""
        return int(self.body.pagination.total)

    def has_next_page(self) -> bool:
        # Lists of agents and what is theirs count from an offset, those of projects in pages.
        at = self.body.pagination
        has_more = at["has_more"] if "has_more" in at else at["has_next"] if "has_next" in at else False
        return bool(has_more) and len(self.items) > 0

    def next_page(self) -> t.Optional[Page[T]]:
        """The page after this one; None after the last."""
        if not self.has_next_page():
            return None
        at = self.body.pagination
        where: t.Dict[str, t.Any] = {"offset": at["offset"] + len(self.items)} if "offset" in at else {"page": at["page"] + 1}
        if "next_cursor" in at and at["next_cursor"] is not None:
            where = {"cursor": at["next_cursor"]}
        return Page(self._fetch, self._fetch(where), self._member)


class PagedList(t.Generic[T]):
    """
    A list that has not been asked for yet: iterate over its entries, which asks for page after page, or take its pages.
    Logs, tasks, events and deliveries go on by a cursor, so each entry comes once; in other lists, what is added or
    removed meanwhile may move an entry over the edge of two pages.
    """

    def __init__(self, fetch: t.Callable[[t.Mapping[str, t.Any]], t.Any], member: str) -> None:
        self._fetch = fetch
        self._member = member

    def page(self) -> Page[T]:
        """The page that the arguments name: the first where they name none."""
        return Page(self._fetch, self._fetch({}), self._member)

    def pages(self) -> t.Iterator[Page[T]]:
        """Page after page."""
        page: t.Optional[Page[T]] = self.page()
        while page is not None:
            yield page
            page = page.next_page()

    def __iter__(self) -> t.Iterator[T]:
        for page in self.pages():
            yield from page.items

    def to_list(self, max_items: t.Optional[int] = None) -> t.List[T]:
        """The first `max_items` entries; all where nothing is said."""
        found: t.List[T] = []
        if max_items is not None and max_items <= 0:
            return found
        for item in self:
            found.append(item)
            if len(found) == max_items:
                break
        return found
