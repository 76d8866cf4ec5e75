"""Counts the pages of a simulated cell: published failure rates, Hostler's own policy, one route that takes pages.

`python -m bench.pages_a_week --nodes 2048 --days 7` plays the pool run of `hostler sim run` and shows its records to
the code that makes messages of them. People close tickets as the simulator has them do. What has been at work when the
time is over is not waited for.
"""

import argparse
import time
from collections import Counter
from collections.abc import Iterable
from datetime import timedelta

from hostler.core.notify.message_grouping import EpisodeMessages, OpenEpisodes
from hostler.core.notify.messages import Message
from hostler.core.notify.notices import TOLD_OF, Place, concerned, notices
from hostler.core.state import events as e
from hostler.core.state.notify_routes import PageRules, Route
from hostler.sim import pool_run
from hostler.sim.failure_rates import load

PAGER = Route("pager", "pagerduty", pages=True)
EVERYTHING = Route("everything", "webhook")


def main() -> None:
    """Play, count, and print pages and messages a week by topic."""
    parser = argparse.ArgumentParser(description="Counts the pages of a simulated cell.")
    parser.add_argument("--nodes", type=int, default=2048)
    parser.add_argument("--days", type=float, default=7.0)
    parser.add_argument("--rates", default="llama3")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    began = time.perf_counter()
    settings = pool_run.SimSettings(arguments.nodes, arguments.days, arguments.rates, arguments.seed)
    rates = load(settings.rates)
    drive, _ = pool_run.build(settings, rates)
    first = drive.seq
    pool_run._live(settings, rates, drive, None)  # noqa: SLF001 - the same days that `sim run` plays
    messages = told(drive.journal.records(0), first)
    weeks = arguments.days / 7
    for route in (PAGER, EVERYTHING):
        of_route = [one for one in messages if one.route == route.name]
        by_topic = Counter(f"{one.topic} {one.action}" for one in of_route)
        print(f"{route.name}: {len(of_route) / weeks:.1f} messages a week", dict(sorted(by_topic.items())))
    pages = sum(one.route == PAGER.name and one.action == "open" for one in messages)
    print(f"pages a week: {pages / weeks:.1f} ({arguments.nodes} nodes, {arguments.days:g} days, {arguments.rates})")
    print(f"{drive.seq - first} records, {time.perf_counter() - began:.0f} s")


def told(records: Iterable[e.Record], first: int) -> list[Message]:
    """Messages of all records after `first`; places are read along the way."""
    places: dict[str, Place] = {}
    found: list[Message] = []
    messages = EpisodeMessages("c1", OpenEpisodes())
    routes, rules = (PAGER, EVERYTHING), PageRules()
    last = None
    for record in records:
        event = record.event
        if isinstance(event, e.NodeRegistered) and event.node.assignment is not None:
            places[event.node.id] = Place(event.node.assignment.pool, event.node.assignment.tenant)
        if isinstance(event, e.NodeAssigned):
            places[event.node] = Place(event.assignment.pool, event.assignment.tenant)
        if record.seq <= first:
            continue
        last = record.at
        found += messages.due(record.at, routes)
        if isinstance(event, TOLD_OF):
            where = {name: (places.get(name, Place()),) for name in concerned(event)}
            for notice in notices(event, where, rules):
                found += messages.take(notice, record.seq, record.at, routes)
        if isinstance(event, e.NodeReleased):
            places.pop(event.node, None)
    return [*found, *(messages.due(last + timedelta(hours=1), routes) if last is not None else ())]


if __name__ == "__main__":
    main()
