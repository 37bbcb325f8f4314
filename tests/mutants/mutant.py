"""What a mutant is: one line of the shipped source that is wrong, and the ring that must notice."""

from __future__ import annotations

from dataclasses import dataclass

from tests.history.putting_back import Bug, Edit

UNTIMED = "untimed"


@dataclass(frozen=True)
class Mutant:
    """A rule with a mistake in it.

    `rule` is what it breaks, by the numbers of rules and invariants. `edit` is one change of one
    function, looked up by name and tokens, so that it survives other edits of file and function;
    `also` is the same change where the rule occurs twice. `ring` is what kills it: `untimed`, or
    tests as pytest names them.
    """

    name: str
    rule: str
    edit: Edit
    ring: str = UNTIMED
    also: Edit | None = None

    @property
    def bug(self) -> Bug:
        """The change, in the form of a historic bug."""
        return (self.edit,) if self.also is None else (self.edit, self.also)
