"""A line whenever a quorum gets another leader: `python -m examples.watch_quorum HOST:PORT,...`."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator

from kraftwire.client import Admin, QuorumInfo
from kraftwire.errors import ApiError

PAUSE_S = 0.2


def leaders(admin: Admin) -> Iterator[QuorumInfo]:
    """The quorum as it is now, and again after every election."""
    epoch = -1
    while True:
        try:
            quorum = admin.describe_quorum()
        except ApiError as error:  # nobody leads, or nobody can be reached
            print(error, file=sys.stderr)
        else:
            if quorum.leader_epoch > epoch:
                epoch = quorum.leader_epoch
                yield quorum
        time.sleep(PAUSE_S)


def main(bootstrap_controllers: str) -> None:
    """Print leaders until somebody presses ctrl-C."""
    for quorum in leaders(Admin(bootstrap_controllers=bootstrap_controllers)):
        lags = {voter.id: quorum.lag(voter) for voter in quorum.voters}
        print(f"epoch {quorum.leader_epoch}: node {quorum.leader_id} leads; lag of voters: {lags}")


if __name__ == "__main__":
    try:
        main(sys.argv[1])
    except KeyboardInterrupt:
        raise SystemExit(130) from None
