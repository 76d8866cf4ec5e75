"""The lifecycle's page: graph, phases, edges, recipes, operations, guards and verbs, from their own tables."""

from collections.abc import Iterator

from msgspec.structs import fields

from hostler.cli.reference.markdown import block, code, table, time_of
from hostler.core.policy.guards import GUARDS
from hostler.core.state import operations as op
from hostler.core.state.model import Phase
from hostler.core.state.verbs.every import VERBS
from hostler.core.state.verbs.facts import help_of
from hostler.core.tables.asset_states import ASSET_TRANSITIONS
from hostler.core.tables.conditions import CONDITIONS
from hostler.core.tables.operations import OPERATIONS
from hostler.core.tables.phases import PHASES, TRANSITIONS
from hostler.core.tables.recipes import RECIPES, Recipe, StepRow


def page() -> str:
    """The page."""
    return "\n".join(
        (
            "# Lifecycle\n",
            (
                "Every node stands in one phase and moves only along these edges. From every phase but production an "
                "operator may also retire it.\n"
            ),
            block("mermaid", graph()),
            "## Phases\n",
            table(("phase", "what happens", "work", "limit", "then", "waits for", "stuck after"), _phases()),
            "## Edges\n",
            table(("from", "to", "on", "who"), _edges()),
            "## Recipes\n",
            (
                "What a phase's work or a remedy consists of. A plan is a frozen copy. In brackets: how long a step "
                "may take; ↶ names what takes it back when the plan ends early; ? marks a step that may fail.\n"
            ),
            table(("recipe", "class", "steps", "leads to", "failed"), _recipes()),
            "## Operations\n",
            table(("operation", "port", "seen by", "needs", "sent again", "may land late"), _operations()),
            "## Gates\n",
            (
                "What a gate sees besides every GPU, memory, disk and clock: whatever convicted is seen gone by each "
                "of its readers, by name. A name that ends in a dot stands for a family; what is in no row and is not "
                "ended by its own observer can be seen gone by nobody, and such a gate is inconclusive.\n"
            ),
            table(("condition", "seen gone by"), _gates()),
            "## Guards\n",
            "Whether an act of that class is asked by the guard (●) or passes.\n",
            table(("guard", *_classes()), _guards()),
            "## Verbs\n",
            "What people may ask for, on what, with which arguments (? may be left out), and who may.\n",
            table(("verb", "what it does", "target", "arguments", "permission", "command"), _verbs()),
            "## Assets that are not nodes\n",
            table(("from", "to", "on"), ASSET_TRANSITIONS),
        )
    )


def _verbs() -> Iterator[tuple[str, ...]]:
    for verb, kind in sorted(VERBS.items()):
        facts = kind.facts
        args = (f"{code(one.name)}{'' if one.required else '?'}" for one in fields(kind))
        command = f"node {verb}" if facts.heading else facts.command
        yield code(verb), help_of(kind), facts.target, ", ".join(args), facts.asks, code(command) if command else ""


def graph() -> Iterator[str]:
    """The phases as a Mermaid state diagram; retiring is left out, it would cross everything."""
    yield "stateDiagram-v2"
    yield "    [*] --> registered"
    for edge in TRANSITIONS:
        if edge.after is not Phase.retired:
            who = "" if edge.who == "automatic" else f" ({edge.who})"
            yield f"    {edge.before} --> {edge.after}: {edge.on.replace(':', ',')}{who}"
    yield "    retired --> [*]"


def _phases() -> Iterator[tuple[str, ...]]:
    for row in PHASES.values():
        then = str(row.on_limit) if row.on_limit else ""
        limit, usual = time_of(row.limit_s), time_of(row.usual_s)
        yield code(row.phase), row.title, code(row.recipe), limit, code(then), row.waits_for, usual


def _edges() -> Iterator[tuple[str, ...]]:
    for edge in TRANSITIONS:
        yield code(edge.before), code(edge.after), edge.on, edge.who


def _recipes() -> Iterator[tuple[str, ...]]:
    for recipe in RECIPES.values():
        steps = " → ".join(_step(step) for step in recipe.steps)
        yield code(recipe.name), _class(recipe), steps, str(recipe.to_phase or ""), str(recipe.failed_phase or "")


def _class(recipe: Recipe) -> str:
    return str(recipe.act_class) if recipe.act_class else "as its condition's timing says"


_EACH = {
    "": "",
    "firmware": " for each part off its baseline",
    "link": " for each link that fails",
    "login": " and wipe_dpu_login, for each BMC with a password that was made for it",
    "fabric": " for each network whose design names it",
    "hardware": " where its SKU has a hardware manifest",
    "baseline": " of the SKU's baseline",
    "settings": ", where the SKU has BIOS attributes written",
    "depth": " as deep as what was repaired asks for",
    "hands": ", hardware and as deep a test as the repair asks for, where hands were in it",
}


def _step(step: StepRow) -> str:
    each = _EACH[step.each]
    undo = f" ↶ {step.undo}" if step.undo else ""
    return (
        f"{step.act.kind}{_argument(step.act)}{each}{'?' if step.optional else ''} ({time_of(step.deadline_s)}){undo}"
    )


def _argument(act: op.AnyAct) -> str:
    match act:
        case op.RunChecks():
            return f" {act.profile}"
        case op.VerifyInventory():
            return " convicts" if act.convicts else " waits"
        case _:
            return ""


def _operations() -> Iterator[tuple[str, ...]]:
    for row in OPERATIONS.values():
        again = "once seen not to have happened" if row.repeatable else "never"
        yield code(row.kind), row.port, row.observed_by, ", ".join(row.needs), again, time_of(row.settle_s or None)


def _gates() -> Iterator[tuple[str, ...]]:
    rows = [kind for kind in CONDITIONS.values() if kind.gate is not None]
    for readers in dict.fromkeys(kind.gate for kind in rows):
        shown = ", ".join(code(kind.type) for kind in rows if kind.gate == readers)
        yield shown, ", ".join(readers or ()) or "the gate's answer itself"


def _classes() -> tuple[str, ...]:
    return tuple(str(act_class).replace("_", "-") for act_class in next(iter(GUARDS.values())))


def _guards() -> Iterator[tuple[str, ...]]:
    for guard, asked in GUARDS.items():
        yield guard.replace("_", " "), *("●" if is_asked else "" for is_asked in asked.values())
