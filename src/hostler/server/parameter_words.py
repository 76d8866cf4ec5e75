"""Descriptions of the API's parameters by name: one table, for every route that takes one of that name."""

from typing import Any

BY_NAME: dict[str, str] = {
    "Hostler-Agent-Protocol": "the version of the agents' protocol that the agent speaks",
    "Idempotency-Key": "makes a repeated request the same request: it gets the first answer; 100 characters at most",
    "Last-Event-ID": "the number of the last record that was read; the stream goes on after it",
    "Priority": "u=0 for observations that may doom a job: they pass where others are turned away (RFC 9218)",
    "address": "only requests from this address",
    "answer": "approve, deny, or withdraw by who asked",
    "approval": "an approval's id, as the list of approvals shows it",
    "backtest": "a backtest's id, as the list of backtests shows it",
    "before": "continue before this number: the last page's cursor",
    "case_id": "a return's id, as the list of returns shows it",
    "chain": "only this chain of the audit log: one controller's term",
    "claim": "only tickets that the caller has claimed (mine), or that nobody has (nobody)",
    "condition": "only nodes with a condition of this type",
    "cursor": "continue after this key: the last page's cursor",
    "device": "only of this device of the network",
    "digest": "the SHA-256 of the file",
    "disputed": "only goldens about which peers disagree",
    "found": "only cables that were found in this condition",
    "golden_id": "a golden's id, as the list of goldens shows it",
    "incident_id": "an incident's id, as the list of incidents shows it",
    "intent": "an intent's id, as the answer to the request named it",
    "key": "the finding's key, as the list of findings shows it",
    "kind": "only things of this kind",
    "limit": "at most so many on one page",
    "low": "only lines with fewer spares than there should be",
    "name": "its name, as its list shows it",
    "new": "the later version of the design: its number, digest, or current",
    "node": "only of this node: its id, serial number or host name",
    "node_id": "a node's id, serial number or host name",
    "number": "a delivery's number, as the list of deliveries shows it",
    "old": "the earlier version of the design: its number, digest, or current",
    "order": "newest or oldest first",
    "overdue": "only returns that wait for longer than they should",
    "person": "only requests of this person",
    "phase": "only nodes in this phase",
    "pool": "only of this pool",
    "port": "a port, as DEVICE:PORT",
    "q": "only nodes with this text within their id, a name or a serial number",
    "rack": "a rack by name",
    "result": "only those that came to this",
    "rollout": "a rollout's id, as the list of rollouts shows it",
    "route": "a route of notifications by name",
    "serial": "a serial number",
    "sha256": "only of the configuration with this SHA-256",
    "shelf": "those in no node, instead of those in nodes",
    "site": "only of this site",
    "sku": "only of this SKU",
    "source": "only of this source: agent, bmc or another",
    "span": "the time up to now that is looked at",
    "tag": "only nodes with this tag: its name, or NAME=VALUE",
    "target": "only requests about this target",
    "tenant": "only of this tenant; a tenant reads its own alone",
    "ticket": "a ticket's id, as the list of tickets shows it",
    "verb": "what is asked for, as the list of verbs names it",
    "wait_s": "how long to wait for an answer where there is none yet, in seconds",
}
"""A parameter's name → what it is for, where its route says nothing itself."""


def with_words(parameter: dict[str, Any]) -> dict[str, Any]:
    """The parameter with its description."""
    said = parameter.get("description") or parameter.get("schema", {}).get("description")
    return {**parameter, "description": said or BY_NAME.get(parameter["name"], "")}
