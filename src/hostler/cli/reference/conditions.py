"""The conditions' page: every row of the table, with the default policy's answer beside it."""

from collections.abc import Iterator
from importlib.resources import files

from hostler.cli.reference.markdown import code, table, time_of
from hostler.core.conditions import CONDITIONS
from hostler.core.configuration import Rule
from hostler.core.policy.documents import parse

_CLEARS = {
    "remedy": "a remedy and the check after it",
    "observation": "the reading comes back",
    "operator": "a person",
    "age": "time",
}


def page() -> str:
    """The page."""
    rules = _default()
    return "\n".join(
        (
            "# Conditions\n",
            "What can ail a node. The answer is the default policy's; your documents may say otherwise.\n",
            *(_group(name, rules) for name in dict.fromkeys(kind.partition(".")[0] for kind in CONDITIONS)),
        )
    )


def _group(name: str, rules: dict[str, Rule]) -> str:
    titles = ("condition", "severity", "meaning", "look at", "ended by", "default answer")
    return f"## {name.replace('_', ' ')}\n\n{table(titles, _rows(name, rules))}"


def _rows(group: str, rules: dict[str, Rule]) -> Iterator[tuple[str, ...]]:
    for kind in CONDITIONS.values():
        if kind.type.partition(".")[0] == group:
            after = f" ({time_of(kind.expires_s)})" if kind.expires_s else ""
            ended = _CLEARS[kind.clears] + after
            answer = _answer(rules.get(kind.type))
            yield code(kind.type), kind.severity.name, kind.meaning, kind.investigate, ended, answer


def _answer(rule: Rule | None) -> str:
    if rule is None:
        return "what the person asked for"
    if not rule.remedy:
        return "watched"
    confirmed = ", once a second path agrees" if rule.confirm else ""
    return f"{rule.remedy}, {rule.timing}{confirmed}"


def _default() -> dict[str, Rule]:
    text = files("hostler.core.policy").joinpath("default_policy.yaml").read_text(encoding="utf-8")
    return parse({"default_policy.yaml": text}).policy.rules
