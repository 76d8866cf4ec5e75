"""Injects sources that say as much as they can: an agent, a BMC, and a neighbour on the boot network."""

from collections.abc import Callable, Iterator
from random import Random

from msgspec.structs import replace

from hostler.controller.inputs import AgentHeard, BootAsked
from hostler.core.boot.boot_decision import MAC, WRONG, BootRequest
from hostler.core.state.model import Part
from hostler.sim.fault_injection.injection import InjectionContext
from hostler.sim.world.message_spool import ObservationContent

EVERY_S = 20.0
ROUNDS, SAID_AT_ONCE = 40, 15
"""A word each second or so for a quarter of an hour: several times the small budgets of these worlds."""
STOLEN = 6
"""Parts of another node that a lying agent shows at a time."""
WAYS = ("script", "seed", "home", "loader", "enrol", "medium")


def agent_says_all(injection: InjectionContext, node: str, chance: Random) -> None:
    """Root on the node: its agent shows parts of others and does not, in turns, and writes to the log what it likes."""
    host, others = injection.host(node), [name for name in injection.world.hosts if name != node]

    def say() -> None:
        if not host.running:
            return
        for number in range(SAID_AT_ONCE):
            own = host.present_parts()
            other = injection.host(chance.choice(others)) if others else host
            stolen = other.present_parts()[:STOLEN] if number % 2 else ()
            shown = (*own, *(replace(part, slot=f"x{part.slot}") for part in stolen if other is not host))
            host.spool.put("inventory", ObservationContent(facts={"covers": "gpu"}, parts=shown), host.boot_id)
            text = f"NVRM: Xid (PCI:0000:{number % 8:02x}:00): 43, pid={chance.randrange(10**6)}, name=x{number}"
            host.spool.put("kernel_log", ObservationContent(text, facility=1), host.boot_id)

    _again_and_again(injection, say, host.report_inventory)


def bmc_says_all(injection: InjectionContext, node: str, _chance: Random) -> None:
    """The BMC lists a supply that is there and is not, in turns."""
    host = injection.host(node)

    def say() -> None:
        for number in range(SAID_AT_ONCE):
            supplies = tuple(Part(f"{node}-psu{n}", "psu", "x", f"psu{n}") for n in range(4 - number % 2))
            host.bmc_spool.put("inventory", ObservationContent(facts={"covers": "psu"}, parts=supplies))

    _again_and_again(injection, say, lambda: None)


def boot_neighbour(injection: InjectionContext, node: str, chance: Random) -> None:
    """A machine on the boot network asks under every name and address, in every way there is."""
    site = injection.world.site

    def say() -> None:
        for number in range(SAID_AT_ONCE):
            mac = f"02:00:00:00:{chance.randrange(256):02x}:{chance.randrange(256):02x}"
            named = node if number % 3 else ""
            wrong = {"identity": WRONG, "plan": "p"} if number % 5 == 0 else {"identity": MAC}
            arch = ("x86_64", "arm64", "")[number % 3]
            asked = BootRequest(WAYS[number % 6], "10.9.9.9", mac="" if named else mac, node=named, arch=arch)
            site.tell(BootAsked(site.token(lambda _reply: None), replace(asked, **wrong)))

    _again_and_again(injection, say, lambda: None)


def boots_flap(injection: InjectionContext, node: str, chance: Random) -> None:
    """A heartbeat names another boot each time; the true one comes last."""
    host = injection.host(node)

    def say() -> None:
        if not host.running:
            return
        for boot in _boots(chance, SAID_AT_ONCE):
            injection.world.site.tell(AgentHeard(node, boot))
        injection.world.site.tell(AgentHeard(node, host.boot_id))

    _again_and_again(injection, say, host.greet)


def _boots(chance: Random, most: int) -> Iterator[str]:
    yield from (f"boot-{chance.randrange(10**9)}" for _ in range(most))


def _again_and_again(injection: InjectionContext, say: Callable[[], None], end: Callable[[], None]) -> None:
    left = [ROUNDS]

    def once() -> None:
        if left[0] <= 0 or injection.troubles.healed:
            return
        left[0] -= 1
        say()
        injection.later(EVERY_S, once)

    def over() -> None:
        left[0] = 0
        end()

    once()
    injection.lasts(ROUNDS * EVERY_S, over)
