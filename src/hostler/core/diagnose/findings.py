"""Makes findings: a condition that stands, or one that an observation shows to be over."""

from hostler.core.diagnose import Finding
from hostler.core.diagnose.line import printable
from hostler.core.state.model import Facts, Severity
from hostler.core.tables.conditions import CONDITIONS


def stands(
    condition: str, text: str, part: str = "", facts: Facts | None = None, severity: Severity | None = None
) -> Finding:
    """The condition is there, as grave as its row says unless `severity` says otherwise."""
    grave = CONDITIONS[condition].severity if severity is None else severity
    return Finding(condition, grave, printable(text), part, facts=facts or {})


def over(condition: str, text: str, part: str = "") -> Finding:
    """The observation shows that the condition is not there."""
    return Finding(condition, CONDITIONS[condition].severity, printable(text), part, standing=False)
