"""Lists that are read page by page."""

from __future__ import annotations

import typing as t

T = t.TypeVar("T")


class Page(t.Generic[T]):
    """A page of a list."""

    def __init__(self, fetch: t.Callable[[t.Mapping[str, t.Any]], t.Any], body: t.Any, member: str) -> None:
        self._fetch = fetch
        self._member = member
        #: The whole body of the response.
        self.body = body
        self.items: t.List[T] = body[member]

    @property
    def total(self) -> int:
        """Number of matching entries on all pages."""
        return int(self.body.pagination.total)

    def has_next_page(self) -> bool:
        # Lists of the error format `agents` have offsets, those of `control` have page numbers.
        at = self.body.pagination
        has_more = at["has_more"] if "has_more" in at else at["has_next"] if "has_next" in at else False
        return bool(has_more) and len(self.items) > 0

    def next_page(self) -> t.Optional[Page[T]]:
        """The next page; None after the last."""
        if not self.has_next_page():
            return None
        at = self.body.pagination
        where: t.Dict[str, t.Any] = {"offset": at["offset"] + len(self.items)} if "offset" in at else {"page": at["page"] + 1}
        if "next_cursor" in at and at["next_cursor"] is not None:
            where = {"cursor": at["next_cursor"]}
        return Page(self._fetch, self._fetch(where), self._member)


class PagedList(t.Generic[T]):
    """
    A list, which sends requests only when it is read: iterate over its entries or its pages. Logs, tasks, events and
    deliveries have cursors, so each entry is returned once. In other lists, entries that are added or removed meanwhile may
    shift an entry to another page.
    """

    def __init__(self, fetch: t.Callable[[t.Mapping[str, t.Any]], t.Any], member: str) -> None:
        self._fetch = fetch
        self._member = member

    def page(self) -> Page[T]:
        """The page that the arguments select; the first by default."""
        return Page(self._fetch, self._fetch({}), self._member)

    def pages(self) -> t.Iterator[Page[T]]:
        """All pages."""
        page: t.Optional[Page[T]] = self.page()
        while page is not None:
            yield page
            page = page.next_page()

    def __iter__(self) -> t.Iterator[T]:
        for page in self.pages():
            yield from page.items

    def to_list(self, max_items: t.Optional[int] = None) -> t.List[T]:
        """The first `max_items` entries; all by default."""
        found: t.List[T] = []
        if max_items is not None and max_items <= 0:
            return found
        for item in self:
            found.append(item)
            if len(found) == max_items:
                break
        return found
