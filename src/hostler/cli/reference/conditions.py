"""The conditions' page: every row of the table with the default policy's answer, and how it is raised and ended."""

from collections.abc import Iterator
from importlib.resources import files

from hostler.cli.reference.markdown import code, table, time_of
from hostler.core.diagnose.rules import RULES
from hostler.core.policy.documents import parse
from hostler.core.state.configuration import Rule
from hostler.core.tables.conditions import CONDITIONS, ConditionKind

_CLEARS = {
    "remedy": "a remedy and the check after it",
    "observation": "the reading comes back",
    "operator": "a person",
    "age": "time",
}
_OURS = {"hostler": "never: Hostler's own word", "person": "never: a person's request"}


def page() -> str:
    """The page."""
    rules = _default()
    return "\n".join(
        (
            "# Conditions\n",
            "What can ail a node. The answer is the default policy's; your documents may say otherwise. Every",
            "condition has its evidence and an owner, and a person may clear any (`hostler node clear-condition`).",
            "Where whoever could confirm or revoke it falls silent for the time in the column *unknown after*, nobody",
            "claims to know: it then stands as unknown, disturbs nobody by itself, and is not cleared by time.\n",
            "Where the policy has no remedy for a condition, its ticket says what a person does: one for each cause,",
            "closed once whoever saw it sees it no more, and opened again when it comes back.\n",
            "Below each group: what people do, and how each way of seeing raises and ends it. Looks are looks in a",
            "row that agree.\n",
            *(_group(name, rules) for name in dict.fromkeys(kind.partition(".")[0] for kind in CONDITIONS)),
        )
    )


def _group(name: str, rules: dict[str, Rule]) -> str:
    titles = ("condition", "severity", "meaning", "look at", "ended by", "unknown after", "default answer")
    how = ("condition", "seen by", "raised after", "over after", "hysteresis", "graver")
    heading = f"## {name.replace('_', ' ')}"
    hands = ("condition", "who, by when", "bring", "where", "done when", "one ticket for")
    work = table(hands, _hands(name)) + "\n" if any(_hands(name)) else ""
    return f"{heading}\n\n{table(titles, _rows(name, rules))}\n{work}{table(how, _how(name))}"


_DUE = {"now": "now", "day": "next working day", "occasion": "next occasion"}
_SHARED = {"": "each part", "sku": "all of the SKU", "part": "all with that name", "cell": "the cell"}


def _hands(group: str) -> Iterator[tuple[str, ...]]:
    for kind in CONDITIONS.values():
        hands = kind.hands
        if kind.type.partition(".")[0] == group and hands is not None:
            after = f", after {time_of(hands.after_s)}" if hands.after_s else ""
            covered = f"; none beside {', '.join(map(code, hands.symptom_of))}" if hands.symptom_of else ""
            covered += "; none beside another ticket" if hands.last else ""
            who = f"{hands.owner}, {_DUE[hands.due]}{after}"
            yield code(kind.type), who, hands.bring, hands.where, hands.proof, _SHARED[hands.shared] + covered


def _how(group: str) -> Iterator[tuple[str, ...]]:
    for kind in CONDITIONS.values():
        if kind.type.partition(".")[0] == group:
            for rule in RULES[kind.type]:
                over = _looks(rule.clear_looks, rule.every_s) if rule.clear_looks is not None else "never by this"
                raised = _looks(rule.raise_looks, rule.every_s)
                yield code(kind.type), rule.by, raised, over, rule.margin, rule.worse


def _looks(looks: int, every_s: float) -> str:
    if not every_s:
        return "once" if looks == 1 else f"{looks} times"
    return f"{looks} look{'s' if looks > 1 else ''} of {time_of(every_s)}"


def _rows(group: str, rules: dict[str, Rule]) -> Iterator[tuple[str, ...]]:
    for kind in CONDITIONS.values():
        if kind.type.partition(".")[0] == group:
            after = f" ({time_of(kind.expires_s)})" if kind.expires_s else ""
            ended = _CLEARS[kind.clears] + after
            answer = _answer(rules.get(kind.type))
            if kind.returned:
                answer += "; the part is returned whatever its checks say"
            yield code(kind.type), kind.severity.name, kind.meaning, kind.investigate, ended, _doubt(kind), answer


def _doubt(kind: ConditionKind) -> str:
    return time_of(kind.unknown_after_s) if kind.source == "observer" else _OURS[kind.source]


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
