"""Find message classes by name or API key, loading one generated module at a time."""

from __future__ import annotations

from importlib import import_module

# Every generated module needs these; loading them here keeps its own import short.
from kraftwire.errors import UsageError
from kraftwire.wire import encodings as encodings
from kraftwire.wire.message import Message


class Registry:
    """Finds the messages of `kraftwire.messages`, which passes its tables in."""

    def __init__(
        self,
        package: str,
        modules: dict[str, str],
        requests: dict[int, str],
        responses: dict[int, str],
    ) -> None:
        self._package = package
        self._modules = modules
        self._requests = requests
        self._responses = responses
        self._classes: dict[str, type[Message]] = {}

    def find(self, name: str) -> type[Message]:
        """Return the class of a message. Raises: UsageError, with similar names, if unknown."""
        if not isinstance(name, str):
            raise UsageError(f"a message's name is a str, not {type(name).__name__} {name!r:.60}")
        found = self._classes.get(name)
        if found is None:
            found = self._classes[name] = self._load(name)
        return found

    def _load(self, name: str) -> type[Message]:
        module_name = self._modules.get(name)
        if module_name is None:
            from difflib import get_close_matches

            near = get_close_matches(name, self._modules, n=3, cutoff=0.5)
            hint = f"; did you mean {', '.join(near)}?" if near else ""
            raise UsageError(f"there is no message {name!r}{hint}")
        module = import_module(f"{self._package}.{module_name}")
        found: type[Message] = getattr(module, name)
        return found

    def names(self) -> tuple[str, ...]:
        """Names of all messages, sorted."""
        return tuple(self._modules)

    def request_class(self, api_key: int) -> type[Message]:
        """Return the request class of an API. Raises: UsageError for an unknown key."""
        return self.find(self._by_key(self._requests, api_key))

    def response_class(self, api_key: int) -> type[Message]:
        """Return the response class of an API. Raises: UsageError for an unknown key."""
        return self.find(self._by_key(self._responses, api_key))

    @staticmethod
    def _by_key(table: dict[int, str], api_key: int) -> str:
        if isinstance(api_key, bool) or not isinstance(api_key, int):
            raise UsageError(f"an API key is an int, not {type(api_key).__name__} {api_key!r:.60}")
        try:
            return table[api_key]
        except KeyError:
            raise UsageError(f"there is no API with key {api_key}") from None
