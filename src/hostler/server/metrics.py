"""The cell in Prometheus's words: counts by phase, pool and condition type, never a label per node."""

from collections import Counter
from collections.abc import Iterable, Mapping

from prometheus_client import CollectorRegistry, GCCollector, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.registry import Collector

from hostler.core.state.model import Phase
from hostler.core.state.syndromes import CAUSES
from hostler.ports import RouteCounts
from hostler.server.app_state import AppState
from hostler.server.connection_limits import ListenerCounts
from hostler.server.notification_log import NotificationLog


class CellCollector(Collector):
    """Reads the committed view when it is scraped; nothing is counted in between."""

    def __init__(self, app_state: AppState, queues: Mapping[str, RouteCounts]) -> None:
        self._cell = app_state.cell
        self._now = app_state.now
        self._streams = app_state.streams
        self._forwarded = app_state.forwarder.counts
        self._connections = app_state.connections
        self._open_files = app_state.open_files
        self._boot = app_state.outside.boot
        self._notifications = app_state.outside.notifications
        self._queues = queues

    def collect(self) -> Iterable[Metric]:
        """Yield every metric of the cell; those of clusters and nodes on the active controller only."""
        yield from self._controller()
        yield from self._standing()
        if self._cell.role == "active":
            yield self._clusters()
            yield from self._looked_at()
        yield self._fabric_findings()
        yield self._link_faults()
        yield from self._nodes()
        if self._notifications is not None:
            yield from self._told(self._notifications)

    def _told(self, log: NotificationLog) -> Iterable[Metric]:
        """Notifications by route. The queue is the cell's, attempts are this process's."""
        sent = CounterMetricFamily("hostler_notifications", "Attempts to deliver.", labels=["route", "result"])
        for result, numbers in (("sent", log.sent), ("failed", log.failed)):
            for route, number in sorted(numbers.items()):
                sent.add_metric([route, result], number)
        yield sent
        counts = self._queues
        waiting = GaugeMetricFamily("hostler_notifications_queued", "Messages that wait.", labels=["route"])
        dead = GaugeMetricFamily("hostler_notifications_dead", "Messages that were given up.", labels=["route"])
        oldest = GaugeMetricFamily(
            "hostler_notifications_oldest_seconds", "For how long the oldest of the queue has waited.", labels=["route"]
        )
        for route in sorted({*self._cell.view.configuration.routes, *counts}):
            found = counts.get(route, RouteCounts())
            waiting.add_metric([route], found.queued)
            dead.add_metric([route], found.dead)
            waited_s = (self._now() - found.oldest).total_seconds() if found.oldest else 0.0
            oldest.add_metric([route], max(0.0, waited_s))
        yield from (waiting, dead, oldest)

    def _controller(self) -> Iterable[Metric]:
        health, fleet = self._cell.health(), self._cell.view
        yield InfoMetricFamily(
            "hostler_controller", "The controller of this cell.", value={"cell": self._cell.name, "role": health.role}
        )
        yield CounterMetricFamily("hostler_journal_records", "Records in the journal.", value=health.seq)
        yield _gauge("hostler_controller_up", "1 while the controller decides.", int(health.ok))
        yield _gauge("hostler_controller_epoch", "The lease's epoch.", health.epoch)
        yield _gauge("hostler_inputs_queued", "Inputs that wait to be decided.", health.queued)
        yield _gauge("hostler_commit_seconds", "How long the last commit took.", health.commit_ms / 1000)
        yield from self._cell.commits.collect()
        yield _gauge("hostler_brake_latched", "1 while the storm brake is latched.", int(bool(fleet.cell.brake)))
        yield _gauge("hostler_restored", "1 while a restored journal waits.", int(bool(fleet.cell.restored)))
        yield _gauge("hostler_clock_doubted", "1 while the clock is not believed.", int(bool(fleet.cell.doubt)))
        yield _gauge("hostler_format", "The format up to which events are written.", fleet.cell.format)
        yield _gauge("hostler_paused_scopes", "Scopes in which disruption is paused.", len(fleet.cell.paused))
        yield _gauge("hostler_event_streams", "Open event streams.", self._streams.open)
        yield from self._connected()
        yield _gauge("hostler_tickets_open", "Open tickets.", len(fleet.tickets))
        now = self._now()
        late = sum(t.due_by is not None and t.due_by < now for t in fleet.tickets.values())
        yield _gauge("hostler_tickets_overdue", "Open tickets that should have been done by now.", late)
        yield _gauge("hostler_operations_running", "Operations that are under way.", fleet.index.count("operating"))
        incidents = GaugeMetricFamily(
            "hostler_incidents", "Open incidents, by the kind of part blamed.", labels=["kind"]
        )
        blamed = Counter(incident.scope.kind for incident in fleet.incidents.values())
        for kind in CAUSES:
            incidents.add_metric([kind], blamed[kind])
        yield incidents
        held = sum(len(i.members) for i in fleet.incidents.values() if i.holds)
        yield _gauge("hostler_incident_nodes", "Nodes that an incident keeps from being treated by themselves.", held)
        yield _gauge("hostler_holds", "Active holds.", len(fleet.holds))
        yield _gauge("hostler_approvals_waiting", "Intents that wait for a second person.", len(fleet.approvals))
        rollout = fleet.rollout
        yield _gauge("hostler_rollout_running", "1 while a configuration is rolled out.", int(rollout is not None))
        errors = len(rollout.errors) if rollout else 0
        yield _gauge("hostler_rollout_errors", "Errors of the slice that is watched.", errors)

    def _connected(self) -> Iterable[Metric]:
        """Open connections, and how near they are to their limit."""
        tables = self._connections
        found = GaugeMetricFamily(
            "hostler_connections", "Open connections, by whether a token was recognised on them.", labels=["known"]
        )
        found.add_metric(["no"], sum(table.strangers for table in tables))
        found.add_metric(["yes"], sum(table.known for table in tables))
        yield found
        most = sum(table.limits.total for table in tables)
        yield _gauge("hostler_connections_max", "The most connections that are taken.", most)
        refused = sum(table.refused for table in tables)
        yield CounterMetricFamily(
            "hostler_connections_refused", "Connections turned away, or closed for a newer one.", value=refused
        )
        boot = self._boot()
        yield from _listeners([*(table.counts() for table in tables), *(boot.counts if boot is not None else ())])
        looks = self._open_files.exhausted + (boot.exhausted if boot is not None else 0)
        yield CounterMetricFamily(
            "hostler_open_files_exhausted", "Looks at which no file could be opened.", value=looks
        )
        if boot is not None:
            yield _gauge("hostler_boot_listeners_up", "1 while the boot listeners' process answers.", int(boot.up))
            text = "Starts of the boot listeners' process after it had ended or hung."
            yield CounterMetricFamily("hostler_boot_listeners_restarts", text, value=boot.restarts)

    def _standing(self) -> Iterable[Metric]:
        """Role of this controller within its cell."""
        health = self._cell.health()
        yield _gauge("hostler_controller_active", "1 where this controller decides.", int(health.role == "active"))
        yield _gauge("hostler_lease_margin_seconds", "For how long it may act without a renewal.", health.margin_s)
        yield _gauge("hostler_behind_records", "Records known to be missing here.", health.behind)
        yield _gauge("hostler_behind_seconds", "Seconds since none was missing.", health.behind_s)
        yield _gauge("hostler_journal_reachable", "1 while the journal answers.", int(health.reachable))
        yield _gauge("hostler_disk_reserve_reached", "1 while no observations are taken.", int(bool(health.disk)))
        yield _gauge("hostler_snapshot_age_records", "Records behind the newest snapshot.", health.snapshot_age)
        failed = health.snapshots_failed
        yield CounterMetricFamily("hostler_snapshots_failed", "Snapshots that could not be taken.", value=failed)
        peers = GaugeMetricFamily("hostler_controllers", "Controllers by whether they live.", labels=["state"])
        for state, alive in (("alive", True), ("gone", False)):
            peers.add_metric([state], sum(peer.alive is alive for peer in health.peers))
        yield peers
        carried = CounterMetricFamily("hostler_forwarded", "Requests carried to the active.", labels=["outcome"])
        for outcome, number in sorted(self._forwarded.items()):
            carried.add_metric([outcome], number)
        yield carried

    def _clusters(self) -> Metric:
        """Of those that pools are served in; who stands by hears none."""
        found = GaugeMetricFamily(
            "hostler_cluster_heard", "1 while it is known what runs in the cluster.", labels=["cluster"]
        )
        pools = self._cell.view.configuration.pools.values()
        for cluster in sorted({pool.cluster for pool in pools if pool.cluster}):
            found.add_metric([cluster], int(self._cell.live.synced(cluster)))
        return found

    def _fabric_findings(self) -> Metric:
        """Open findings of each network; one without any has zeros."""
        fleet = self._cell.view
        found = GaugeMetricFamily("hostler_fabric_findings", "Open findings of networks.", labels=["fabric", "kind"])
        counts = {(name, kind): 0 for name in fleet.fabrics for kind in ("missing", "moved", "swapped", "degraded")}
        for case in fleet.fabric_cases.values():
            key = (case.fabric, case.finding.kind)
            counts[key] = counts.get(key, 0) + 1
        for labels, number in sorted(counts.items()):
            found.add_metric(list(labels), number)
        return found

    def _link_faults(self) -> Metric:
        """Links of each network that fail a check in service; one without any has a zero."""
        fleet = self._cell.view
        labels = ["fabric", "check", "grade"]
        found = GaugeMetricFamily("hostler_link_faults", "Links that fail a check in service.", labels=labels)
        counts = {(name, "flaps", "act"): 0 for name in fleet.fabrics}
        for case in fleet.link_cases.values():
            key = (case.fabric, case.fault.check.value, case.fault.grade.value)
            counts[key] = counts.get(key, 0) + 1
        for key, number in sorted(counts.items()):
            found.add_metric(list(key), number)
        return found

    def _looked_at(self) -> Iterable[Metric]:
        """Age of what is known of each network; who stands by looks at none."""
        text = "Seconds since the last validation began that concluded something; no sample: none since the start."
        age = GaugeMetricFamily("hostler_fabric_validation_age_seconds", text, labels=["fabric"])
        text = "1 where the last validation concluded something."
        whole = GaugeMetricFamily("hostler_fabric_validation_whole", text, labels=["fabric"])
        for name in self._cell.view.fabrics:
            live = self._cell.live.fabrics.get(name)
            whole.add_metric([name], int(live is not None and live.last.verdict.concludes))
            if live is not None and live.good is not None:
                age.add_metric([name], max(0.0, (self._now() - live.good.began).total_seconds()))
        yield age
        yield whole

    def _nodes(self) -> Iterable[Metric]:
        fleet = self._cell.view
        count = fleet.index.count
        phases = GaugeMetricFamily("hostler_nodes", "Nodes by phase.", labels=["phase"])
        for phase in Phase:
            phases.add_metric([phase.value], count(f"phase:{phase}"))
        yield phases
        for key, text in (("waiting", "that wait"), ("operating", "with an operation"), ("ailing", "with a condition")):
            yield _gauge(f"hostler_nodes_{key}", f"Nodes {text}.", count(key))
        pools = GaugeMetricFamily("hostler_pool_nodes", "Nodes of each pool by state.", labels=["pool", "state"])
        for name, pool in sorted(fleet.configuration.pools.items()):
            pools.add_metric([name, "reserved"], pool.target)
            pools.add_metric([name, "delivered"], count(f"pool:{name}"))
            unknown = count(f"doubted:{name}")
            pools.add_metric([name, "healthy"], count(f"healthy:{name}"))
            pools.add_metric([name, "unknown"], unknown)
        yield pools
        spares = GaugeMetricFamily("hostler_spares", "Spares by SKU.", labels=["sku"])
        for sku in sorted(fleet.configuration.skus):
            spares.add_metric([sku], count(f"spare:{sku}"))
        yield spares
        yield self._conditions()

    def _conditions(self) -> Metric:
        fleet = self._cell.view
        counts: dict[tuple[str, str], int] = {}
        for node_id in fleet.index.committed("ailing"):
            for condition in fleet.nodes[node_id].conditions:
                key = (condition.type, "known" if condition.unknown_since is None else "unknown")
                counts[key] = counts.get(key, 0) + 1
        text = "Active conditions, by type, and whether they are known or unknown."
        found = GaugeMetricFamily("hostler_conditions", text, labels=["type", "state"])
        for labels, number in sorted(counts.items()):
            found.add_metric(list(labels), number)
        return found


def exposition(app_state: AppState, queues: Mapping[str, RouteCounts]) -> bytes:
    """The metrics in Prometheus's text format. `queues`: what stands in the outbox, by route."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(CellCollector(app_state, queues))
    ProcessCollector(registry=registry)
    GCCollector(registry=registry)
    sent = app_state.outside.traces
    counted = (app_state.counted.registry, app_state.requests.registry, *((sent,) if sent is not None else ()))
    return b"".join(generate_latest(one) for one in (registry, *counted))


def _listeners(counts: Iterable[ListenerCounts]) -> Iterable[Metric]:
    """Connections of each listener, and those that it ended, by reason."""
    labels = ["listener"]
    there = GaugeMetricFamily("hostler_listener_connections", "Open connections of a listener.", labels=labels)
    most = GaugeMetricFamily("hostler_listener_connections_max", "The most that a listener takes.", labels=labels)
    text = "Connections that a listener ended: no room, a late handshake, request or reader, a bad request."
    ended = CounterMetricFamily("hostler_listener_connections_ended", text, labels=[*labels, "reason"])
    for one in counts:
        there.add_metric([one.listener], one.open)
        most.add_metric([one.listener], one.most)
        for reason, number in sorted(one.ended.items()):
            ended.add_metric([one.listener, reason], number)
    yield from (there, most, ended)


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(name, text, value=value)
