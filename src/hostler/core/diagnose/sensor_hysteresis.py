"""How conditions that a BMC shows are raised, made worse and cleared: looks that must agree, and margins."""

from msgspec import Struct

from hostler.core.state.model import Severity


class SensorRule(Struct, frozen=True):
    """One row. `raise_looks` and `clear_looks`: so many looks in a row must say the same before it counts.

    `hysteresis_c`: how far below its threshold a temperature must fall before the condition is over. `words` are the
    states that raise it, each with the severity that it has then: a graver word makes it worse.
    """

    condition: str
    raise_looks: int = 2
    clear_looks: int = 2
    hysteresis_c: float = 0.0
    words: dict[str, Severity] = {}


_WORDS = {"warning": Severity.warning, "critical": Severity.degraded, "failed": Severity.degraded}

SENSOR_RULES: dict[str, SensorRule] = {
    rule.condition: rule
    for rule in (
        SensorRule("thermal.over_limit", clear_looks=3, hysteresis_c=5.0),
        SensorRule("thermal.near_limit", raise_looks=3, clear_looks=3, hysteresis_c=5.0),
        SensorRule("cooling.leak"),
        SensorRule("cooling.leak_suspected", clear_looks=3),
        SensorRule("cooling.fan", clear_looks=3, words=_WORDS),
        SensorRule("cooling.redundancy", clear_looks=3, words=_WORDS),
        SensorRule("power.redundancy", clear_looks=3, words=_WORDS),
        SensorRule(
            "power.supply",
            clear_looks=3,
            words=dict.fromkeys(
                (
                    "warning",
                    "critical",
                    "failed",
                    "absent",
                    "disabled",
                    "off",
                    "no_input",
                    "input_lost",
                    "unavailableoffline",
                ),
                Severity.degraded,
            ),
        ),
        SensorRule("part.unhealthy", clear_looks=3, words=_WORDS),
        SensorRule("system.unhealthy", clear_looks=3, words=_WORDS),
        SensorRule("chassis.intrusion"),
        SensorRule("storage.failed", clear_looks=3),
        SensorRule("firmware.drift"),
        SensorRule("observation.unreadable"),
    )
}
"""A rule for every condition that a BMC's readings can raise; a test holds it to that."""

NEAR_C = 5.0
"""How close to its limit a temperature is worth a word, where the BMC names no caution threshold."""
