"""Requests of which some elements are refused, and the others carried out.

What is carried out lacks the refused elements; the answer to it is joined with theirs, in the order
of the request. Where a request does not list what it is about (all topics, or those of a session of
ShareFetch), the errors are put over elements of the answer.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass, field
from typing import Any

from kraftwire import messages
from kraftwire.protocol.answers import Answers, Route, answers_of
from kraftwire.protocol.entities import Context, Level, TopicName, request_level
from kraftwire.protocol.refusals import SUCCESS, Error, Sources, answer, bare_answer, top_answer
from kraftwire.wire.message import Message, Struct

Decide = Callable[[Context], bool | None]
"""Whether what is about this is refused; None if only what is further in can tell."""

# The session of a share group has the partitions of all its requests, in step with the client's.
_IN_SESSION = {"ShareFetch", "ShareAcknowledge"}
_PASSED_WHOLE = {"ShareFetch"}
# Its answer has brokers besides the topics. In version 0 no topics are all: the request is whole.
_WITH_MORE = {"Metadata"}

_NOTHING_GIVEN = (None, "", bytes(16))


@dataclass(frozen=True, slots=True)
class _Part:
    """What becomes of an element of a request.

    `values` are those of its answer by which it is known. Without `refused`, its answer, all of it
    is carried out; with `inner`, the parts of arrays in it, some of it is.
    """

    values: tuple[tuple[str, Any], ...]
    refused: Struct | None = None
    inner: tuple[tuple[Answers, list[_Part]], ...] = ()


@dataclass(frozen=True, slots=True)
class _Place:
    """A struct of a request, or an element that is none, with its copy and what it is about.

    `level` is what a struct names.
    """

    sources: Sources
    kept: Any
    context: Context
    level: Level

    def inside(self, attribute: str, element: Any, topic_name: TopicName) -> _Place:
        """Return the place of an element of an array."""
        sources = (element, *self.sources)
        for each in self.level.fields:
            kind = each.kind(self.sources[0])
            if each.attribute == attribute and kind is not None:
                return _Place(sources, element, {**self.context, kind: element}, Level())
        levels = [found for name, _, found in self.level.inner if name == attribute]
        level = levels[0] if levels else Level()
        context = level.own_context(element, self.context, topic_name)
        return _Place(sources, copy(element), context, level)


class PartialRefusal:
    """A request divided in what is refused with an error, and what is carried out.

    `passed` is the request without the refused elements, None if nothing is left of it; then
    `refused` is the answer. Neither the request nor its elements are changed.
    """

    def __init__(
        self,
        message: Message,
        version: int,
        decide: Decide,
        error: Error,
        topic_name: TopicName,
        *,
        is_innermost: bool = False,
    ) -> None:
        """With `is_innermost` an error stands in the innermost element that is refused, otherwise
        in the outermost one."""
        self._name = messages.API_NAMES[message.API_KEY]
        self._version = version
        self._decide = decide
        self._error = error
        self._topic_name = topic_name
        self._is_innermost = is_innermost
        self._has_unlisted = self._name in _IN_SESSION
        self._refused_count = 0
        level = request_level(message.API_KEY, version)
        self._context = level.own_context(message, {}, topic_name)
        kept = copy(message)
        place = _Place((message,), kept, self._context, level)
        self._parts = [
            (each, self._divide(each, place)) for each in answers_of(message.API_KEY, version)
        ]
        self.refused = self._with_refused(top_answer(message, version, SUCCESS), self._parts)
        self.passed = self._passed(message, kept)
        self._is_passed_whole = self.passed is message

    @property
    def refuses_nothing(self) -> bool:
        """Whether no error can be placed."""
        return not self._refused_count and not self._has_unlisted

    def _passed(self, message: Message, kept: Message) -> Message | None:
        is_left = any(_is_left(each) for _, parts in self._parts for each in parts)
        is_all = self._name in _WITH_MORE and not self._version and not is_left
        if self._name in _PASSED_WHOLE or is_all:
            return message
        has_more = self._name in _IN_SESSION or self._name in _WITH_MORE
        return kept if is_left or has_more or not self._refused_count else None

    def _divide(self, answers: Answers, place: _Place) -> list[_Part]:
        """Return the parts of an array in a struct, whose copy loses what is refused."""
        parts: list[_Part] = []
        for route in answers.routes:
            self._divide_along(answers, route, 0, place, parts)
        return parts

    def _divide_along(
        self, answers: Answers, route: Route, depth: int, place: _Place, parts: list[_Part]
    ) -> None:
        attribute = route.path[depth]
        elements = getattr(place.sources[0], attribute)
        if elements is None or (not elements and self._name in _WITH_MORE and not self._version):
            self._has_unlisted = True
            return
        left = []
        for element in elements:
            inside = place.inside(attribute, element, self._topic_name)
            before = len(parts)
            if depth + 1 < len(route.path):
                self._divide_along(answers, route, depth + 1, inside, parts)
            else:
                parts.append(self._part(answers, route, inside))
            if any(_is_left(each) for each in parts[before:]) or len(parts) == before:
                left.append(inside.kept)
        setattr(place.kept, attribute, left)

    def _part(self, answers: Answers, route: Route, place: _Place) -> _Part:
        values = tuple((each.target, each.value(place.sources)) for each in route.copies)
        decided = self._decide(place.context)
        if decided is False:
            return _Part(values)
        if decided and self._stands_in(answers):
            self._refused_count += 1
            return _Part(values, answer(answers, route, place.sources, self._error))
        inner = tuple(
            (each, self._divide(each, place)) for each in answers.inner if each.has_errors
        )
        if not any(each.refused for _, parts in inner for each in parts):
            return _Part(values)
        bare = bare_answer(answers, dict(values), SUCCESS)
        return _Part(values, self._with_refused(bare, inner), inner)

    def _stands_in(self, answers: Answers) -> bool:
        """Return whether the error stands in the elements of an array, not further in."""
        has_further = any(each.has_errors for each in answers.inner)
        return bool(answers.error) and not (self._is_innermost and has_further)

    def _with_refused(self, target: Any, inner: Any) -> Any:
        for answers, parts in inner:
            refused = [each.refused for each in parts if each.refused is not None]
            setattr(target, answers.attribute, refused)
        return target

    def join(self, response: Message) -> Message:
        """Put the refused elements into the answer to what was carried out; returns it."""
        self._join(self._parts, response)
        if self._has_unlisted:
            self._put_over(answers_of(response.API_KEY, self._version), response, self._context)
        return response

    def _join(self, inner: Any, response: Any) -> None:
        for answers, parts in inner:
            found = _Found(getattr(response, answers.attribute) or ())
            joined = []
            for part in parts:
                is_answered = _is_left(part) or self._is_passed_whole
                own = found.take(part.values) if is_answered else None
                if own is None or (part.refused is not None and not part.inner):
                    own = part.refused
                elif part.inner:
                    self._join(part.inner, own)
                if own is not None:
                    joined.append(own)
            setattr(response, answers.attribute, [*joined, *found.left()])

    def _put_over(self, inner: tuple[Answers, ...], response: Any, outer: Context) -> None:
        """Replace the elements of an answer that are refused."""
        for answers in inner:
            elements = getattr(response, answers.attribute)
            for index, element in enumerate(elements or ()):
                context = answers.level.own_context(element, outer, self._topic_name)
                decided = self._decide(context)
                if decided and self._stands_in(answers):
                    values = {name: getattr(element, name) for name in answers.targets}
                    elements[index] = bare_answer(answers, values, self._error)
                elif decided is not False:
                    self._put_over(answers.inner, element, context)


def _is_left(part: _Part) -> bool:
    """Return whether something of an element is carried out."""
    if part.refused is None:
        return True
    return any(_is_left(each) for _, parts in part.inner for each in parts)


@dataclass(slots=True)
class _Found:
    """Elements of an answer, which are taken one by one, by values that they repeat."""

    elements: Any
    taken: set[int] = field(default_factory=set)
    by_names: dict[tuple[str, ...], dict[Any, deque[int]]] = field(default_factory=dict)

    def take(self, values: tuple[tuple[str, Any], ...]) -> Any:
        """Return the first element with these values; those that the request leaves out are any."""
        given = [each for each in values if each[1] not in _NOTHING_GIVEN] or list(values)
        names = tuple(name for name, _ in given)
        index = self.by_names.get(names)
        if index is None:
            index = self.by_names[names] = {}
            for number, each in enumerate(self.elements):
                key = tuple(getattr(each, name) for name in names)
                index.setdefault(key, deque()).append(number)
        numbers = index.get(tuple(value for _, value in given), deque())
        while numbers:
            number = numbers.popleft()
            if number not in self.taken:
                self.taken.add(number)
                return self.elements[number]
        return None

    def left(self) -> Iterator[Any]:
        """Yield what was not taken."""
        return (each for number, each in enumerate(self.elements) if number not in self.taken)
