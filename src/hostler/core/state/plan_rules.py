"""Rules by which a plan ends, frozen with it: a plan begun under an older table of recipes ends by its own rules."""

from enum import StrEnum

from msgspec import Struct


class OnFailure(StrEnum):
    """Consequence of a failed plan that leads to no phase."""

    stays = "stays"
    undoes = "undoes"
    raises = "raises"


class Answers(StrEnum):
    """Conditions that a finished plan has answered: what a remedy clears of those named.

    causes: its causes. examined: all, and what ages from an earlier boot. earlier_boots: all from before this boot.
    """

    causes = "causes"
    nothing = "nothing"
    examined = "examined"
    earlier_boots = "earlier_boots"


class Releases(StrEnum):
    """End of a plan with which its node leaves its pool; one that is undone has begun to serve it with the plan."""

    never = "never"
    done = "done"
    undone = "undone"


class PlanRules(Struct, frozen=True, omit_defaults=True):
    """Rules of one recipe for its plans.

    `on_failure`: "undoes" runs the undo tail, as a disruptive plan that has disturbed nobody always does; "raises" is
    the condition remedy.failed. `left_phase`: where a plan leads that fails once its node has left its cluster.
    `found_phase`: where a finished plan leads whose node still shows evidence. `keeps`: the kind of hold (cordon,
    power) that keeps the node from then on as the person who asked for the plan wants it. `cures`: the operation that
    cures; how often one was needed is counted. `hands`: somebody's hands were in the machine, so that another part may
    sit in a slot.
    """

    on_failure: OnFailure = OnFailure.stays
    left_phase: str = ""
    found_phase: str = ""
    answers: Answers = Answers.causes
    releases: Releases = Releases.never
    keeps: str = ""
    cures: str = ""
    hands: bool = False
