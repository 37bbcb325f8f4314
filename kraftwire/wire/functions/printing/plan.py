"""Plan the printers of a message: one function for each layout, and one for its tagged fields."""

from __future__ import annotations

from kraftwire.wire.functions.names import function_stem, ranges
from kraftwire.wire.functions.planner import Planner
from kraftwire.wire.functions.printing.fields import Fields, holds_records
from kraftwire.wire.functions.printing.frames import PrintArray, PrintRoot, PrintTags, TagBranch
from kraftwire.wire.functions.printing.steps import NoTags, NoTopic, Tags
from kraftwire.wire.writer import default_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kraftwire.wire.facts import FieldFacts, MessageFacts, StructFacts
    from kraftwire.wire.functions.layout import Layout
    from kraftwire.wire.functions.packers import PackerSet
    from kraftwire.wire.functions.steps import Step

__all__ = ["PrintPlanner"]

# The parameters of functions for structs that hold records, in addition to those that all have.
_PARAMETERS = ", gaps, topic, topic_id"


class PrintPlanner(Planner):
    """Plans the printers of a message."""

    def __init__(
        self, packers: PackerSet, layouts: dict[int, Layout], facts: MessageFacts
    ) -> None:
        super().__init__(packers, layouts)
        self._facts = facts
        self._weights: dict[str, int] = {}
        self._fields: dict[str, dict[str, FieldFacts]] = {}
        self._add_struct(facts.root)

    def _add_struct(self, facts: StructFacts) -> None:
        # What a struct takes from the budget: one for itself and one for each value.
        self._weights[facts.name] = 1 + len(facts.cls.__slots__)
        self._fields[facts.name] = {field.attribute: field for field in facts.fields}
        for field in facts.fields:
            if field.struct:
                self._add_struct(field.struct)

    def _root(self, layout: Layout) -> PrintRoot:
        steps, text = self._body(layout)
        return PrintRoot(
            name=f"print_{self._stem(layout)}",
            struct=layout.name,
            versions=self._label(layout),
            topic=(NoTopic(),) if holds_records(layout) else (),
            weight=self._weights[layout.name],
            steps=steps,
            text=text,
        )

    def _array(self, layout: Layout) -> PrintArray:
        steps, text = self._body(layout)
        return PrintArray(
            name=f"print_{self._stem(layout)}_array",
            struct=layout.name,
            versions=self._label(layout),
            more=_PARAMETERS if holds_records(layout) else "",
            weight=1 + self._weights[layout.name],
            min_size=layout.min_size,
            steps=steps,
            text=text,
        )

    def _body(self, layout: Layout) -> tuple[tuple[Step, ...], str]:
        """Return the steps for a struct, and the formatted string that they are for."""
        fields = self._start(layout)
        text = ",".join([fields.add(item) for item in layout.items])
        fields.end(has_tags=layout.flexible)
        if layout in self.tags:
            more = fields.topic if _tags_hold_records(layout) else ""
            fields.steps.append(Tags(self.tags[layout].name, more))
            text += "{tags}" if text else "{tags[1:]}"
        elif layout.flexible:
            fields.steps.append(NoTags())
        return tuple(fields.steps), f"{{{{{text}}}}}"

    def _start(self, layout: Layout) -> Fields:
        return Fields(self.packers, self.functions, self._fields[layout.name])

    def _tags(self, layout: Layout, versions: list[int]) -> PrintTags:
        branches: list[TagBranch] = []
        for tag, item in layout.tagged:
            fields = self._start(layout)
            text = fields.add(item)
            fields.end(has_tags=False)
            default = default_bytes(
                self._facts, self._fields[layout.name][item.attribute], versions[0]
            )
            word = "elif" if branches else "if"
            branches.append(TagBranch(word, tag, repr(default), tuple(fields.steps), text))
        name = f"print_{function_stem(layout.name, versions)}_tags"
        more = _PARAMETERS if _tags_hold_records(layout) else ""
        return PrintTags(name, layout.name, ranges(versions), more, tuple(branches))


def _tags_hold_records(layout: Layout) -> bool:
    return any(item.layout and holds_records(item.layout) for _, item in layout.tagged)
