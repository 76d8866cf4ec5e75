"""Names of the ways to colour and to group the cells of the console's grid."""

from enum import StrEnum


class Colouring(StrEnum):
    """Ways to colour the cells of the grid."""

    phase = "phase"
    age = "age"
    tenant = "tenant"
    firmware = "firmware"
    check = "check"
    drift = "drift"


class Grouping(StrEnum):
    """Ways to group the cells of the grid."""

    rack = "rack"
    row = "row"
    site = "site"
    pool = "pool"
    cluster = "cluster"
