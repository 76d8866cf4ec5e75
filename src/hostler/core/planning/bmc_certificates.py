"""Renews BMCs' certificates: on schedule, before they expire, after one was recorded that is not ours, on a word. Pure.

The renewal runs beside the node's plan, as a password's does. It waits for the password's first renewal, which records
by which certificate the BMC is known: that one stays recorded until the new one is proved.
"""

from datetime import datetime, timedelta

from hostler.core.conditions.own_conditions import certificate_gives_up
from hostler.core.planning import bmc_logins
from hostler.core.state import events as e
from hostler.core.state.assets import BMC_CERTIFICATE
from hostler.core.state.bmc_certificate import CERTIFY, BmcCertificate
from hostler.core.state.configuration import BmcCertificatePolicy
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.decisions import Act, Answer, Wait
from hostler.core.state.durations import duration
from hostler.core.state.model import Node
from hostler.core.state.operations import RenewBmcCertificate
from hostler.core.state.verbs.bmc_certificates import RenewCertificate

AT_MOST_EVERY = timedelta(days=1)
"""An authority that itself expires soon issues certificates that are due at once."""


def beside(context: DecisionContext, node: Node, answer: Answer) -> Answer:
    """The answer with the renewal that is done beside it, or is waited for."""
    return answer if isinstance(answer, Act) else bmc_logins.with_aside(context, answer, renewal(context, node))


def renewal(context: DecisionContext, node: Node) -> Act | Wait | datetime | None:
    """The renewal that begins now, what it waits for, when it is due, or None where there is none to be."""
    policy, known = context.fleet.policy_of(node).bmc_certificates, node.bmc_certificate
    asked = known is not None and known.asked_at is not None
    if not (asked or policy.renew_every_s) or bmc_logins.cannot_begin(node) or certificate_gives_up(node):
        return None
    if not node.binding(BMC_CERTIFICATE):
        return None  # it is not known yet by any: the first renewal of its password, or a person, records one
    why = why_due(context.now, node.binding(BMC_CERTIFICATE), known or BmcCertificate(), policy)
    if isinstance(why, datetime):
        return why
    if known is not None and (again := bmc_logins.paused(context, known.failed_at, known.failures)) is not None:
        return again
    by_person = known is not None and known.asked_by not in ("", "hostler")
    asks = RenewCertificate()
    if stopped := bmc_logins.stopped(context, node, CERTIFY, asks, approved=by_person):
        return Wait(CERTIFY, stopped, until=None)
    due = () if asked else (e.BmcCertificateDue(node.id, "hostler", why),)
    return Act((*due, bmc_logins.started(context, node, RenewBmcCertificate(policy.valid_s))))


def why_due(now: datetime, recorded: str, known: BmcCertificate, policy: BmcCertificatePolicy) -> str | datetime:
    """Why a renewal is due now, else when it will be; `recorded` is the certificate by which the BMC is known."""
    if known.asked_at is not None:
        return known.why
    if known.issued != recorded or known.renewed_at is None:
        return "the certificate recorded is not one of the site's authority"
    at = known.renewed_at + timedelta(seconds=policy.renew_every_s)
    why = f"the certificate is older than {duration(policy.renew_every_s)}"
    expires = known.shown.expires_at if known.shown is not None else None
    if expires is not None and (early := expires - timedelta(seconds=policy.before_expiry_s)) < at:
        at, why = max(early, known.renewed_at + AT_MOST_EVERY), f"the certificate expires on {expires:%Y-%m-%d}"
    return at if at > now else why
