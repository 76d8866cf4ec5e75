"""Goldens as people ask about them."""

from hostler.core.conditions import golden_bits
from hostler.core.intents.ask import Ask, Granted, Handler, Handlers, RefusalError
from hostler.core.state.counting import counted
from hostler.core.state.goldens import WITNESSES_LEAST
from hostler.core.state.verbs.goldens import RetireGolden


def retire(ask: Ask[RetireGolden]) -> Granted:
    """A person has a golden learned anew. Raises RefusalError where there is none."""
    intent, fleet = ask.intent, ask.context.fleet
    golden = fleet.goldens.get(intent.target)
    if golden is None:
        raise RefusalError(f"no golden {intent.target}; see `hostler golden list`")
    ended = len(golden.disputes)
    text = f"{golden.check} on this stack is learned anew from {WITNESSES_LEAST} machines that agree"
    told = f"{text}; {counted(ended, 'part')} differed from it" if ended else text
    return told, tuple(golden_bits.retired(fleet, golden, intent.person, intent.reason))


HANDLERS: Handlers = {RetireGolden: Handler(retire)}
