"""One attack, in a process: ``python -m tests.bench.siege.attacker NAME SECONDS TARGET``.

It ends by itself, and so do all its connections.
"""

from __future__ import annotations

import json
import os
import sys

import trio

from tests.bench.siege.attacks import Target
from tests.bench.siege.logins import ALL_ATTACKS
from tests.bench.siege.peer import log_in_by

__all__: list[str] = []

# A real attacker has another machine: where processors are few, nodes have priority.
# An attack that gets no processor time on a busy machine would not be an attack.
_NICENESS = 5


async def _attack(name: str, seconds: float, target: Target) -> None:
    log_in_by(target.login)
    with trio.move_on_after(seconds):
        await ALL_ATTACKS[name].carry_out(target)
        await trio.sleep_forever()


if __name__ == "__main__":
    os.nice(_NICENESS)
    trio.run(_attack, sys.argv[1], float(sys.argv[2]), Target(**json.loads(sys.argv[3])))
