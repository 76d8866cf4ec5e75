"""Bodies that each target takes, and what its answers mean. Pure: nothing is sent here.

Sources: CloudEvents 1.0.2 and its JSON format; Standard Webhooks 1.0.0 (signature); Slack "Incoming webhooks";
Microsoft Teams "Incoming webhooks with Workflows" and Adaptive Cards 1.4; PagerDuty Events API v2 and Change Events;
Opsgenie Alert API; Alertmanager API v2 (openapi.yaml).
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any
from urllib.parse import quote

import msgspec

from hostler.core.notify.cloud_events import cloud_event, message_data
from hostler.core.notify.messages import Message
from hostler.drivers.target_http import HttpAnswer, Letter, said
from hostler.drivers.unreadable_answers import unreadable
from hostler.drivers.webhook_signature import signed_headers, signing_key
from hostler.ports import BusyTargetError, RefusedError, UnreachableError

PAGERDUTY = "https://events.pagerduty.com"
OPSGENIE = "https://api.opsgenie.com"
STANDS = timedelta(days=30)
"""For so long Alertmanager shows what nobody has said the end of."""
NOTE_STANDS = timedelta(minutes=5)
_JSON = {"Content-Type": "application/json", "User-Agent": "Hostler"}
_PAGERDUTY_SEVERITY = ("info", "warning", "error", "critical", "critical")
_OPSGENIE_PRIORITY = ("P5", "P4", "P3", "P2", "P1")
_ENDING = ("note", "digest", "test")
"""Messages that nothing ends later."""


def webhook(message: Message, cell: str, url: str, fields: Mapping[str, str], now_s: int) -> Letter:
    """A CloudEvent, signed over id, moment and body, so that nobody can send it again later as new."""
    body = msgspec.json.encode(cloud_event(message, cell, f"/hostler/cells/{quote(cell, safe='')}"))
    headers = {
        "Content-Type": "application/cloudevents+json; charset=utf-8",
        **signed_headers(signing_key(fields), message.id, now_s, body),
    }
    return Letter(url, body, headers)


def slack(message: Message, cell: str, url: str) -> Letter:
    """Plain text in a section; nothing in it can mention people or carry a link."""
    text = _escaped("\n".join(_lines(message, cell)))
    block = {"type": "section", "text": {"type": "mrkdwn", "text": text[:2_900], "verbatim": True}}
    return Letter(url, msgspec.json.encode({"text": text[:2_900], "blocks": [block]}), _JSON)


def demand_slack(reply: HttpAnswer) -> None:
    """Slack says "ok" where it has taken a message; any other word with a 200 is none."""
    if reply.body.strip() != b"ok":
        raise unreadable(
            "Slack's answer", f"200 came without ok{said(reply)}", "check the webhook's address in the route"
        )


def teams(message: Message, cell: str, url: str) -> Letter:
    """An Adaptive Card of text runs, in which no markup counts."""
    lines = _lines(message, cell)
    blocks = [
        {
            "type": "RichTextBlock",
            "inlines": [{"type": "TextRun", "text": line, "weight": "Bolder" if not n else "Default"}],
        }
        for n, line in enumerate(lines)
    ]
    card = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "body": blocks,
    }
    attachment = {"contentType": "application/vnd.microsoft.card.adaptive", "contentUrl": None, "content": card}
    return Letter(url, msgspec.json.encode({"type": "message", "attachments": [attachment]}), _JSON)


def demand_teams(reply: HttpAnswer) -> None:
    """A workflow answers 202, a connector 200 with "1"; its failures come with 200 and a sentence."""
    text = reply.body.decode(errors="replace").strip()
    if reply.status == 202 or text in ("", "1"):
        return
    if "429" in text:
        raise BusyTargetError(f"Teams takes no more now{said(reply)}; it is tried again")
    raise UnreachableError(
        f"Teams answered {reply.status} with a failure{said(reply)}; see the workflow's run history in Teams"
    )


def pagerduty(message: Message, cell: str, url: str, fields: Mapping[str, str]) -> Letter:
    """An event with the message's key as dedup_key; what nothing ends is a change event, which pages nobody."""
    base = url.rstrip("/") or PAGERDUTY
    payload: dict[str, Any] = {
        "summary": message.summary[:1024],
        "source": message.nodes[0] if message.nodes else f"hostler {cell}",
        "timestamp": message.since,
        "custom_details": msgspec.to_builtins(message_data(message)),
    }
    order: dict[str, Any] = {"routing_key": demand_field(fields, "routing_key"), "payload": payload}
    if message.action in _ENDING and not message.page:
        return Letter(f"{base}/v2/change/enqueue", msgspec.json.encode(order), _JSON)
    payload |= {
        "severity": _PAGERDUTY_SEVERITY[message.severity],
        "component": message.topic,
        "group": message.pool or cell,
        "class": message.details.get("condition", message.topic),
    }
    action = "resolve" if message.action == "over" else "trigger"
    order |= {"event_action": action, "dedup_key": message.key[:255], "client": f"Hostler {cell}"}
    return Letter(f"{base}/v2/enqueue", msgspec.json.encode(order), _JSON)


def demand_pagerduty(reply: HttpAnswer) -> None:
    """Demand that its body says "success", or what it did not like."""
    if _status(reply) != "success":
        raise RefusedError(f"PagerDuty has not taken it{said(reply)}; check the integration key in the route's secret")


def opsgenie(message: Message, cell: str, url: str, fields: Mapping[str, str]) -> Letter:
    """An alert with the message's key as alias, or its end."""
    base = url.rstrip("/") or OPSGENIE
    headers = {**_JSON, "Authorization": f"GenieKey {demand_field(fields, 'api_key')}"}
    alias = message.key[:512]
    if message.action == "over":
        body = {"source": f"hostler {cell}", "note": message.summary[:25_000]}
        return Letter(
            f"{base}/v2/alerts/{quote(alias, safe='')}/close?identifierType=alias", msgspec.json.encode(body), headers
        )
    alert = {
        "message": message.summary[:130],
        "alias": alias,
        "description": "\n".join(_lines(message, cell))[:15_000],
        "source": f"hostler {cell}",
        "entity": (message.nodes[0] if message.nodes else cell)[:512],
        "priority": _OPSGENIE_PRIORITY[message.severity] if message.page else "P5",
        "tags": ["hostler", message.topic],
        "details": {name: str(value)[:1000] for name, value in message.details.items()},
    }
    return Letter(f"{base}/v2/alerts", msgspec.json.encode(alert), headers)


def demand_opsgenie(reply: HttpAnswer) -> None:
    """A request that it took has an id."""
    try:
        found = msgspec.json.decode(reply.body)
    except msgspec.MsgspecError:
        found = None
    if not isinstance(found, dict) or not found.get("requestId"):
        told = f"{reply.status} came without a request id{said(reply)}"
        raise unreadable("Opsgenie's answer", told, "check the route's url")


def alertmanager(message: Message, cell: str, url: str, fields: Mapping[str, str]) -> Letter:
    """One alert. Its labels are the same to its end, so everything that changes is an annotation."""
    ends = message.at
    if message.action != "over":
        ends += NOTE_STANDS if message.action in _ENDING else STANDS
    labels = {
        "alertname": "Hostler" + message.topic.title().replace("_", ""),
        "hostler_key": message.key,
        "cell": cell,
        "severity": message.severity.name,
        "page": str(message.page).lower(),
    } | {name: value for name in ("pool", "tenant", "site", "rack") if (value := getattr(message, name))}
    annotations = {
        "summary": message.summary,
        "count": str(message.count),
        "nodes": ", ".join(message.nodes),
        **({"lines": "\n".join(message.lines)} if message.lines else {}),
    }
    alert = {"labels": labels, "annotations": annotations, "startsAt": message.since, "endsAt": ends}
    headers = {**_JSON, "Authorization": f"Bearer {fields['token']}"} if fields.get("token") else _JSON
    return Letter(f"{url.rstrip('/')}/api/v2/alerts", msgspec.json.encode([alert]), headers)


def mail_text(message: Message, cell: str) -> tuple[str, str]:
    """(subject, body), without line breaks in the subject."""
    word = {"over": "over", "more": "more"}.get(
        message.action, "page" if message.page else message.severity.name.lower()
    )
    summary = " ".join(message.summary.removeprefix("over: ").split())
    return f"[Hostler {cell}] {word}: {summary}"[:200], "\n".join(_lines(message, cell)) + "\n"


def demand_field(fields: Mapping[str, str], name: str) -> str:
    """A field of the secret. Raises UnreachableError where it is missing: a person mends it, and it is sent then."""
    value = fields.get(name, "")
    if not value or not value.isprintable():
        raise UnreachableError(f"the secret has no field {name}, or it is not one line of text; write it there")
    return value


def _lines(message: Message, cell: str) -> list[str]:
    """The message as a person reads it."""
    facts = {"nodes": ", ".join(message.nodes), "pool": message.pool, "rack": message.rack, **message.details}
    more = message.count - len(message.nodes)
    if more > 0 and message.nodes:
        facts["nodes"] += f" and {more} more"
    told = [f"{name}: {value}" for name, value in facts.items() if value]
    mark = "PAGE " if message.page and message.action != "over" else ""
    return [
        f"{mark}{message.summary}",
        *told,
        *message.lines,
        f"since {message.since:%Y-%m-%d %H:%M:%S} UTC, cell {cell}, key {message.key}",
    ]


def _escaped(text: str) -> str:
    """Escaped as Slack asks: no mention, no link, no entity comes from what is told."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _status(reply: HttpAnswer) -> str:
    try:
        found = msgspec.json.decode(reply.body)
    except msgspec.MsgspecError:
        return ""
    return str(found.get("status", "")) if isinstance(found, dict) else ""
