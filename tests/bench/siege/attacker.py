"""One attack, in a process: ``python -m tests.bench.siege.attacker NAME SECONDS TARGET``.

It ends by itself, and all its connections with it.
"""

from __future__ import annotations

import json
import os
import sys

import trio

from tests.bench.siege.attacks import ATTACKS, Target

__all__: list[str] = []

# The attacker's machine is not the one that is measured: where processors are few, nodes go first.
# An attack that gets no time at all on a busy machine would be none.
_NICENESS = 5


async def _attack(name: str, seconds: float, target: Target) -> None:
    with trio.move_on_after(seconds):
        await ATTACKS[name].carry_out(target)
        await trio.sleep_forever()


if __name__ == "__main__":
    os.nice(_NICENESS)
    trio.run(_attack, sys.argv[1], float(sys.argv[2]), Target(**json.loads(sys.argv[3])))
