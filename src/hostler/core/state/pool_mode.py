"""How far a pool lets a remedy go by itself."""

from enum import StrEnum


class Mode(StrEnum):
    """How far a pool lets a remedy go by itself."""

    observe = "observe"
    propose = "propose"
    act = "act"
