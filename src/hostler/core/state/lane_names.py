"""Names of the lanes of a node's timeline, for the server, the console and the command line alike."""

from typing import Literal

LaneName = Literal[
    "phase",
    "pool",
    "condition",
    "plan",
    "wait",
    "operation",
    "check",
    "ticket",
    "hold",
    "part",
    "firmware",
    "job",
    "person",
]
