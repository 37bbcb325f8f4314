"""`sasl.kerberos.principal.to.local.rules`: from a Kerberos principal to the name of a user.

Rule SEC-S52. Source: `KerberosName`, `KerberosRule`, `KerberosShortNamer`. Patterns are Java's;
what Python would read in another way is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kraftwire.errors import UsageError
from kraftwire.security.errors import Refused
from kraftwire.security.java_patterns import CASES, Replacement, compiled

_RULE = re.compile(
    r"(DEFAULT)"
    r"|RULE:\[(\d*):([^\]]*)\](\(([^)]*)\))?(s/([^/]*)/([^/]*)/(g)?)?/?(L|U)?",
    re.ASCII,
)
_NAME = re.compile(r"([^/@]*)(?:/([^/@]*))?@([^/@]*)")
_PARAMETER = re.compile(r"\$(\d*)", re.ASCII)
_NOT_SIMPLE = re.compile("[/@]")
_COMPONENTS_MAX = 2


@dataclass(frozen=True, slots=True)
class _LocalNameRule:
    """A rule for names of some components: their form, which of them, and what is replaced."""

    components: int
    form: str
    match: re.Pattern[str] | None
    replacement: Replacement | None
    is_repeated: bool
    case: str

    def apply(self, parts: Sequence[str]) -> str | None:
        """Return the name for realm and components; None if the rule does not apply."""
        if len(parts) - 1 != self.components:
            return None
        name = _PARAMETER.sub(lambda found: parts[int(found[1])], self.form)
        if self.match is not None and self.match.fullmatch(name) is None:
            return None
        if self.replacement is not None:
            name = self.replacement.applied(name, 0 if self.is_repeated else 1)
        if _NOT_SIMPLE.search(name):
            raise Refused(f"the rule for {'/'.join(parts[1:])} makes {name}: it has / or @ in it")
        return CASES[self.case](name)


class LocalNames:
    """The rules of a listener, in order; `default_realm` is asked where DEFAULT needs it.

    Raises: UsageError for what is no rule, or cannot be used as Java would.
    """

    def __init__(self, rules: Sequence[str], default_realm: Callable[[], str]) -> None:
        # None stands for DEFAULT.
        self._rules = [_parsed(text) for text in rules or ("DEFAULT",)]
        self._default_realm = default_realm

    def name(self, principal: str) -> str:
        """Return a user's name for ``name/host@REALM``. Raises: Refused if no rule applies."""
        found = _NAME.fullmatch(principal)
        if found is None and "@" in principal:
            raise Refused(f"{principal} is no principal of Kerberos: expected name/host@REALM")
        if found is None:
            return principal
        first, second, realm = found.groups()
        parts = (realm, first) if second is None else (realm, first, second)
        for rule in self._rules:
            if rule is not None:
                name = rule.apply(parts)
                if name is not None:
                    return name
            elif realm == self._default_realm():
                return str(first)
        raise Refused(f"no rule of sasl.kerberos.principal.to.local.rules applies to {principal}")


def _parsed(text: str) -> _LocalNameRule | None:
    found = _RULE.match(text)
    if found is None or found.end() != len(text):
        expected = "DEFAULT or RULE:[n:form](pattern)s/pattern/name/g with /L or /U after it"
        raise UsageError(f"{text!r} is no rule: expected {expected}")
    if found[1] is not None:
        return None
    components = int(found[2]) if found[2] and len(found[2]) == 1 else 0
    if not 0 < components <= _COMPONENTS_MAX:
        raise UsageError(f"{text!r}: principals have 1 or {_COMPONENTS_MAX} components")
    for number in _PARAMETER.findall(found[3]):
        if not number or len(number) > 1 or int(number) > components:
            raise UsageError(f"{text!r}: $ is followed by the number of a component, or 0")
    replacement = None
    if found[6] is not None:
        replacement = Replacement(found[8], compiled(found[7]))
    match = None if found[5] is None else compiled(found[5])
    is_global, case = found[9] is not None, found[10] or ""
    return _LocalNameRule(components, found[3], match, replacement, is_global, case)
