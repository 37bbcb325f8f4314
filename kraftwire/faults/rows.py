"""One rule as a row of names and values, as methods, rules files and the control interface have it.

A row names APIs, what happens (one of `FAULTS`) and what limits it; `FaultRow` lists all names.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from difflib import get_close_matches
from typing import Any, TypedDict

from kraftwire import messages
from kraftwire.errors import UsageError
from kraftwire.faults.fault import Fault, error_code
from kraftwire.faults.paths import falsifier
from kraftwire.faults.refusing import has_place
from kraftwire.faults.rules import FaultRule, Limits
from kraftwire.faults.selectors import Offered, RowError, Selector, select
from kraftwire.protocol.entities import KINDS, PARTITION
from kraftwire.protocol.error_codes import ErrorCode


class RuleOptions(TypedDict, total=False):
    """What limits a rule to some of the requests of its APIs.

    Names are one text or a list, each a name or a glob (``orders*``). `versions` is ``3``, ``3-7``
    or ``3+``; `node` the id of the node that is asked; `broker` that of the broker or controller
    that sends. `times` is for the next requests, `every` for each Nth, `probability` for some of
    them by chance, with `seed`; `from_s` and `for_s` are seconds after the rule was added.
    """

    versions: int | str
    node: int
    broker: int
    client_id: str | Collection[str]
    topic: str | Collection[str]
    partition: int | Collection[int]
    group: str | Collection[str]
    transactional_id: str | Collection[str]
    times: int
    every: int
    probability: float
    seed: int
    from_s: float
    for_s: float


def _refuse(value: Any, row: Mapping[str, Any]) -> Fault:
    if value == ErrorCode.NONE.name:
        raise UsageError("NONE is no error, except in a script")
    return Fault(error=error_code(value), is_whole=_bool("whole", row.get("whole", False)))


def _hold(value: Any, row: Mapping[str, Any]) -> Fault:
    _only(value, True)
    undecided = _bool("undecided", row.get("undecided", False))
    return Fault(holds_request=undecided, holds_response=not undecided)


def _delay(value: Any, _: Mapping[str, Any]) -> Fault:
    low, high = value if isinstance(value, list | tuple) and len(value) == 2 else (value, value)
    if not _number(low) <= _number(high):
        raise UsageError(f"a delay is from the shorter to the longer time, not {value!r:.60}")
    return Fault(delay_s=(low, high))


def _observe(value: Any, _: Mapping[str, Any]) -> Fault:
    _only(value, True)
    return Fault()


def _falsify(value: Any, _: Mapping[str, Any]) -> Fault:
    if isinstance(value, Mapping):
        return Fault(values=value)
    if not callable(value):
        raise UsageError(f"expected a map of paths and values, found {value!r:.60}")

    def changed(response: Any, _: int) -> Any:
        try:
            return value(response)
        except Exception:
            raise
        except BaseException as error:
            # As of pytest.fail or sys.exit: it would end the server.
            raise AssertionError(f"{type(error).__name__}: {error}") from error

    return Fault(change_response=changed)


def _drop(value: Any, _: Mapping[str, Any]) -> Fault:
    return Fault(drop=_choice(value, "before", "after"))


def _black_hole(value: Any, _: Mapping[str, Any]) -> Fault:
    return Fault(black_hole=_choice(value, "both", "to_server", "to_client"))


def _throttle(value: Any, _: Mapping[str, Any]) -> Fault:
    if not _number(value):
        raise UsageError("expected more than 0 bytes a second")
    return Fault(bytes_per_s=value)


def _hang_up_at(value: Any, _: Mapping[str, Any]) -> Fault:
    return Fault(hang_up_at=_integer(value, 0))


FAULTS: Mapping[str, Callable[[Any, Mapping[str, Any]], Fault]] = {
    "refuse": _refuse,
    "hold": _hold,
    "delay": _delay,
    "falsify": _falsify,
    "observe": _observe,
    "drop": _drop,
    "black_hole": _black_hole,
    "throttle": _throttle,
    "hang_up_at": _hang_up_at,
}
"""What can happen, by the key of a row: each makes a fault of its value and the row."""

_SCRIPT = "script"

# Keys that belong to one fault alone.
_OF_FAULT = {"whole": "refuse", "undecided": "hold"}
_KEYS = ("api", *FAULTS, _SCRIPT, *_OF_FAULT, *RuleOptions.__annotations__)


def _only(value: Any, wanted: object) -> None:
    if value is not wanted:
        raise UsageError(f"expected {str(wanted).lower()}, found {value!r:.60}")


def _bool(key: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise RowError(key, f"expected true or false, found {value!r:.60}")
    return value


def _number(value: Any) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 0 <= value < float("inf"):
        raise UsageError(f"expected a number of at least 0, found {value!r:.60}")
    return float(value)


def _integer(value: Any, low: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < low:
        raise UsageError(f"expected a whole number of at least {low}, found {value!r:.60}")
    return value


def _choice(value: Any, *choices: Any) -> Any:
    if value not in choices:
        raise UsageError(f"expected {' or '.join(choices)}, found {value!r:.60}")
    return value


def _each(kind: type, value: Any) -> tuple[Any, ...]:
    values = tuple(value) if isinstance(value, list | tuple | set | frozenset) else (value,)
    is_bad = any(not isinstance(one, kind) or isinstance(one, bool) for one in values)
    if not values or is_bad:
        words = "a whole number" if kind is int else "a text"
        raise UsageError(f"expected {words} or a list of them, found {value!r:.60}")
    return values


def new_rule(row: Mapping[str, Any], offered: Offered = messages.API_VERSIONS) -> FaultRule:
    """Return the rule of a row, for a server with these APIs. Raises: RowError."""
    _check_keys(row)
    if _SCRIPT in row:
        if any(key in row for key in (*FAULTS, *_OF_FAULT)):
            raise RowError(_SCRIPT, "a script has its faults in its list")
        faults = _checked(_SCRIPT, _script, row[_SCRIPT])
    else:
        faults = (_fault(row),)
    selector = _selector(row, offered)
    for fault in faults:
        _check_error(fault, selector, is_exact="versions" in row)
    if any(each.values is not None for each in faults):
        key = _SCRIPT if _SCRIPT in row else "falsify"
        faults, selector = _checked(key, _with_values, faults, selector)
    return FaultRule(selector, *faults, limits=_limits(row), row=row)


def rule_json(rule: FaultRule) -> dict[str, Any]:
    """Return a rule as JSON: its row, its id, and what it has done so far."""
    done = {"count": rule.count, "not_carried": dict(rule.not_carried)}
    return {"id": rule.id, **shown_row(rule), **done}


def shown_row(rule: FaultRule) -> dict[str, Any]:
    """Return the row of a rule for people: a function by its name, and no flag that is not set."""
    return {key: _shown(value) for key, value in rule.row.items() if value is not False}


def _shown(value: Any) -> Any:
    if isinstance(value, set | frozenset):
        return sorted(value)
    return f"function {getattr(value, '__name__', '')}".strip() if callable(value) else value


def _check_keys(row: Mapping[str, Any]) -> None:
    for key in row:
        if key not in _KEYS:
            near = get_close_matches(str(key), _KEYS, n=1, cutoff=0.5)
            raise RowError(str(key), f"no such key; did you mean {(*near, 'api')[0]}?")


def _check_error(fault: Fault, selector: Selector, *, is_exact: bool) -> None:
    """Raise RowError if no version, or not all of those that were named, can carry the error."""
    if fault.error is None:
        return
    lacking = [
        f"{messages.API_NAMES[key]} v{version}"
        for key, versions in selector.versions.items()
        for version in versions
        if not has_place(key, version)
    ]
    count = sum(map(len, selector.versions.values()))
    if len(lacking) == count or (is_exact and lacking):
        raise RowError("refuse", f"a response has no place for an error in {', '.join(lacking)}")


def _with_values(
    faults: tuple[Fault, ...], selector: Selector
) -> tuple[tuple[Fault, ...], Selector]:
    """Put functions in the place of values by path, and leave only the versions that have them."""
    done = []
    for fault in faults:
        if fault.values is not None:
            change, versions = falsifier(fault.values, selector.versions)
            selector = replace(selector, versions=versions)
            fault = replace(fault, change_response=change)
        done.append(fault)
    return tuple(done), selector


def _fault(row: Mapping[str, Any]) -> Fault:
    found = [key for key in FAULTS if key in row]
    if len(found) != 1:
        given = " and ".join(found) or "none"
        raise RowError("", f"a rule has one of {', '.join((*FAULTS, _SCRIPT))}, found {given}")
    (name,) = found
    for key, owner in _OF_FAULT.items():
        if key in row and name != owner:
            raise RowError(key, f"is for {owner} only, found {name}")
    fault: Fault = _checked(name, FAULTS[name], row[name], row)
    return fault


def _script(answers: Any) -> tuple[Fault, ...]:
    """Return the faults of a script: names of errors, NONE for none of them, or rows."""
    if not isinstance(answers, list | tuple) or not answers:
        raise UsageError(f"expected a list of errors and faults, found {answers!r:.60}")
    rows = [{"refuse": one} if isinstance(one, str) else one for one in answers]
    for row in rows:
        if not isinstance(row, Mapping) or not row.keys() <= {*FAULTS, *_OF_FAULT}:
            raise UsageError(f"expected an error or a fault, found {row!r:.60}")
    return tuple(Fault() if one == {"refuse": "NONE"} else _fault(one) for one in rows)


def _checked(key: str, read: Callable[..., Any], *values: Any) -> Any:
    try:
        return read(*values)
    except RowError:
        raise
    except UsageError as error:
        raise RowError(key, str(error)) from None


def _selector(row: Mapping[str, Any], offered: Offered) -> Selector:
    if "api" not in row:
        raise RowError("", "a rule names an api, such as Produce or *")
    lists = {
        key: _checked(key, _each, int if key == PARTITION else str, row[key])
        for key in ("api", "client_id", *KINDS)
        if key in row
    }
    ids = {key: _checked(key, _integer, row[key], 0) for key in ("node", "broker") if key in row}
    return select(
        lists["api"],
        offered,
        versions=row.get("versions"),
        node=ids.get("node"),
        sender=ids.get("broker"),
        client_id=lists.get("client_id", ()),
        names={kind: lists[kind] for kind in KINDS if kind in lists},
    )


def _limits(row: Mapping[str, Any]) -> Limits:
    given: dict[str, Any] = {
        key: _checked(key, _integer, row[key], low)
        for key, low in (("times", 1), ("every", 1), ("seed", 0))
        if key in row
    }
    given |= {
        key: _checked(key, _number, row[key])
        for key in ("probability", "from_s", "for_s")
        if key in row
    }
    if not 0 < given.get("probability", 1) <= 1:
        problem = f"expected above 0 and at most 1, found {row['probability']!r}"
        raise RowError("probability", problem)
    if given.get("for_s") == 0:
        raise RowError("for_s", "no request comes within 0 s")
    return Limits(**given)
