"""The common part of the planners of decoders and encoders: one function for each layout."""

from __future__ import annotations

from kraftwire.wire.functions.layout import versions_of
from kraftwire.wire.functions.names import function_stem, ranges

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kraftwire.wire.functions.layout import Layout
    from kraftwire.wire.functions.packers import PackerSet
    from kraftwire.wire.functions.steps import Function

__all__ = ["Planner"]


class Planner:
    """Collects the functions of a message; equal layouts share one, and so do equal tags."""

    def __init__(self, packers: PackerSet, layouts: dict[int, Layout]) -> None:
        self.packers = packers
        self.functions: dict[Layout, Function] = {}
        self.tags: dict[Layout, Function] = {}
        self._layouts = layouts
        self._versions = versions_of(layouts)

    def plan(self, version: int) -> Function:
        """Return the function for a version, planned on first use together with those it calls."""
        return self._plan(self._layouts[version], is_root=True)

    def in_order(self) -> list[Function]:
        """Return all functions, each after those that it calls."""
        found: dict[str, Function] = {}
        for layout, function in self.functions.items():
            if layout in self.tags:
                found.setdefault(self.tags[layout].name, self.tags[layout])
            found[function.name] = function
        return list(found.values())

    def _plan(self, layout: Layout, *, is_root: bool = False) -> Function:
        if layout not in self.functions:
            for child in layout.children:
                self._plan(child)
            if layout.tagged:
                self.tags[layout] = self._tags(layout, self._with_tags_of(layout))
            self.functions[layout] = self._root(layout) if is_root else self._array(layout)
        return self.functions[layout]

    def _root(self, layout: Layout) -> Function:
        """The function for a message."""
        raise NotImplementedError

    def _array(self, layout: Layout) -> Function:
        """The function for structs."""
        raise NotImplementedError

    def _tags(self, layout: Layout, versions: list[int]) -> Function:
        """The function for the tagged fields of a struct, which they have in these versions."""
        raise NotImplementedError

    def _stem(self, layout: Layout) -> str:
        return function_stem(layout.name, self._versions[layout])

    def _label(self, layout: Layout) -> str:
        return ranges(self._versions[layout])

    def _with_tags_of(self, layout: Layout) -> list[int]:
        """Return the versions in which the struct has these tagged fields."""
        return sorted(
            version
            for other, versions in self._versions.items()
            if other.name == layout.name and other.tagged == layout.tagged
            for version in versions
        )
