"""`kraftwire sim controller`: clusters of brokers under the active controller.

Owns the command's arguments and output; what runs is in `kraftwire.sim.controlled`.
"""

from __future__ import annotations

import click

from kraftwire.cli.sim.report import SeedOptions, SeedRun, run_by_steps, seed_range_options
from kraftwire.sim.controlled.run import BrokersOutcome, BrokersTotals, run_seeds, shrink
from kraftwire.sim.failure_report import summary_lines


@click.command()
@seed_range_options
def controller(options: SeedOptions) -> int:
    """Simulate what the active controller decides.

    Brokers register, shut down, crash and restart, leaders report in-sync replicas, an
    administrator creates and deletes topics, and controllers fail over. Exit code 1 if an invariant
    was violated: the fewest steps that violate it are on standard error.
    """
    run = SeedRun("kraftwire sim controller", options, run_seeds, _report)
    return run_by_steps(run, BrokersTotals())


def _report(outcome: BrokersOutcome) -> list[str]:
    found = shrink(outcome)
    count = sum(found.coverage.values())
    steps = f"{outcome.steps} steps, of which {count} are enough"
    title = f"seed {found.seed}, {found.title}: fails after {steps}"
    assert found.violation is not None
    return [*found.history, title, *summary_lines(found.violation)]
