"""`ssl.principal.mapping.rules`: from the name in a certificate to the name of a principal.

Rule SEC-T24. Source: `SslPrincipalMapper`. Patterns are Java's; what Python's `re` would read in
another way is refused, so that a rule never lets in whom Kafka would not. So is a reference to a
group that does not exist: Kafka makes one principal, named `$2`, of all who come by such a rule.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from kraftwire.errors import UsageError
from kraftwire.security.java_patterns import CASES, Replacement, compiled

_ESCAPED = r"(?:\\.|[^\\/])*"
_RULE = rf"(DEFAULT)|RULE:({_ESCAPED})/({_ESCAPED})/([LU]?).*?|(.*?)"
_SPLITTER = re.compile(rf"\s*({_RULE})\s*(,\s*|$)", re.ASCII)
_PARSER = re.compile(_RULE, re.ASCII)


class NoRuleError(UsageError):
    """No rule applies to a certificate's name: its holder may not connect."""


@dataclass(frozen=True, slots=True)
class _MappingRule:
    """A rule; without a replacement it is DEFAULT, which leaves the name as it is."""

    replacement: Replacement | None = None
    case: str = ""

    def apply(self, name: str) -> str | None:
        """Return the principal's name, None if the rule does not apply."""
        if self.replacement is None:
            return name
        if self.replacement.pattern.fullmatch(name) is None:
            return None
        return CASES[self.case](self.replacement.applied(name))


class PrincipalMapper:
    """The rules of a listener, in order.

    Raises: UsageError for a text that is no list of rules, and for a pattern or a replacement that
    cannot be used as Java would.
    """

    def __init__(self, rules: str = "DEFAULT") -> None:
        self._rules = []
        for text in (match[1] for match in _SPLITTER.finditer(rules.strip(_BLANKS))):
            match = _PARSER.match(text)
            if match is None or match.end() != len(text):
                raise UsageError(f"{text!r} is no rule: expected DEFAULT or RULE:pattern/name/[LU]")
            if match[1] is not None:
                self._rules.append(_MappingRule())
            elif match[2] is not None:
                replacement = Replacement(match[3], compiled(match[2]))
                self._rules.append(_MappingRule(replacement, match[4]))

    def name(self, distinguished_name: str) -> str:
        """Return the principal's name for the name in a certificate. Raises: NoRuleError."""
        for rule in self._rules:
            name = rule.apply(distinguished_name)
            if name is not None:
                return name
        raise NoRuleError(
            "no rule of ssl.principal.mapping.rules applies to the certificate's name"
        )


# The characters that Java's String.trim removes.
_BLANKS = "".join(map(chr, range(33)))
