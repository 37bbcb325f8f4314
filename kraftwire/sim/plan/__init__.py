"""A cluster's plan: plain data, and how it is drawn from a seed."""

from kraftwire.sim.plan.drawing import LENGTH_MS, draw
from kraftwire.sim.plan.model import (
    CHANGE_KINDS,
    DYNAMIC,
    FAULT_KINDS,
    HUNT_STAGES,
    LEADER,
    STATIC,
    UPGRADED,
    Fault,
    Plan,
    Snapshots,
    Weather,
)

__all__ = [
    "CHANGE_KINDS",
    "DYNAMIC",
    "FAULT_KINDS",
    "HUNT_STAGES",
    "LEADER",
    "LENGTH_MS",
    "STATIC",
    "UPGRADED",
    "Fault",
    "Plan",
    "Snapshots",
    "Weather",
    "draw",
]
