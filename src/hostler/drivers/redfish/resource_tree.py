"""Learns what of a BMC belongs to one machine: systems beside its own, all chassis, and the managers.

A machine with a GPU baseboard shows two systems, and neither names the chassis in which GPUs, sensors and leak
detectors are. Where one machine is behind the BMC, all of it is that machine's; where several are, what is linked.
"""

from hostler.drivers.redfish import wire
from hostler.drivers.redfish.bulk_read import Survey
from hostler.drivers.redfish.client import MAX_SYSTEMS, NotOfferedError, RedfishClient
from hostler.drivers.redfish.sensor_layout import ResourceTree
from hostler.drivers.redfish.tolerant_json import Document, child, link, links

MAX_CHASSIS = 128
"""Of one machine: more than any has, fewer than a broken BMC may list."""
MAX_MANAGERS = 8
_ROOTS_OF_TRUST = ("erot", "irot")
"""Chassis that hold no sensor, and of which some BMCs never answer for one: asked for only together with all others."""


async def known(survey: Survey, system: wire.System) -> ResourceTree:
    """The machine's part of the BMC, learned once."""
    found = survey.client.trees.get(system.path)
    return found if found is not None else await learn(survey, system)


async def learn(survey: Survey, system: wire.System, *, at_once: bool = True) -> ResourceTree:
    """Learn it anew. `at_once`: chassis are asked for in one request where the BMC offers that."""
    client = survey.client
    systems = await _systems(survey, system)
    machines = {one.path for one in wire.hosts(systems)} | {system.path}
    beside = [one for one in systems if one.path not in machines]
    if rest := tuple(sorted(machines - {system.path})):
        tree = ResourceTree((), rest, await _linked(survey, system), await _managers(client, [system], alone=False))
    else:
        baseboards = tuple(one.path for one in beside)
        chassis = await _all(survey, system, at_once=at_once)
        tree = ResourceTree(baseboards, (), chassis, await _managers(client, [system, *beside], alone=True), whole=True)
    client.logs.pop(system.path, None)
    if not survey.broken:
        client.trees[system.path] = tree
    return tree


async def others(survey: Survey, system: wire.System) -> tuple[str, ...]:
    """Machines of their own behind the same BMC."""
    if (found := survey.client.trees.get(system.path)) is not None:
        return found.others
    machines = wire.hosts(await _systems(survey, system))
    return tuple(one.path for one in machines if one.path != system.path)


async def chassis(survey: Survey, tree: ResourceTree) -> list[Document]:
    """The chassis of a machine, in one request where all of the BMC's are its own and the BMC inlines them."""
    root = await survey.client.root()
    if tree.whole and root.chassis and root.expand:
        return (await survey.many(root.chassis, "Chassis"))[:MAX_CHASSIS]
    return [doc for path in tree.chassis if (doc := await survey.one(path))]


async def _systems(survey: Survey, system: wire.System) -> list[wire.System]:
    """All systems, the machine's own as it was just read."""
    try:
        listed = await survey.client.systems()
    except NotOfferedError:
        return [system]
    missed = [one.path for one in listed if one.unread and one.path != system.path]
    if missed and len(listed) <= MAX_SYSTEMS:
        survey.pass_over(f"systems {', '.join(missed)} could not be read")
    return [system if one.path == system.path else one for one in listed]


async def _all(survey: Survey, system: wire.System, *, at_once: bool) -> tuple[str, ...]:
    """Every chassis of the BMC, kept as read for whoever asks next."""
    root = await survey.client.root()
    if not root.chassis:
        return system.chassis
    if root.expand and at_once:
        docs = await survey.many(root.chassis, "Chassis")
        for doc in docs[:MAX_CHASSIS]:
            survey.seen(link(doc), doc)
        paths = [survey.client.local(link(doc)) for doc in docs if link(doc)]
    else:
        listed = await survey.client.member_paths(root.chassis)
        paths = [path for path in listed if not _is_root_of_trust(path)]
    if len(paths) > MAX_CHASSIS:
        survey.pass_over(f"{len(paths)} chassis, {MAX_CHASSIS} are read")
    own = [path for path in paths if path in system.chassis]
    return tuple(dict.fromkeys((*own, *sorted(paths))))[:MAX_CHASSIS]


async def _linked(survey: Survey, system: wire.System) -> tuple[str, ...]:
    """The chassis that the system names, and what these contain."""
    found: dict[str, None] = {}
    waiting = list(system.chassis)
    while waiting and len(found) < MAX_CHASSIS:
        path = survey.client.local(waiting.pop(0)).rstrip("/")
        if path in found:
            continue
        found[path] = None
        waiting += links(child(await survey.one(path), "Links"), "Contains")
    return tuple(found)


async def _managers(client: RedfishClient, systems: list[wire.System], *, alone: bool) -> tuple[str, ...]:
    """The managers that the systems name; all of the BMC where none is named and it serves one machine."""
    named = dict.fromkeys(path for system in systems for path in system.managers)
    root = await client.root()
    if not named and alone and root.managers:
        named = dict.fromkeys(await client.member_paths(root.managers))
    return tuple(named)[:MAX_MANAGERS]


def _is_root_of_trust(path: str) -> bool:
    return any(mark in path.rpartition("/")[2].lower() for mark in _ROOTS_OF_TRUST)
