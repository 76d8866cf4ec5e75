"""Has a joining kubelet's certificate signed: of the node whose token asks for it, and once; no other is looked at.

Kubernetes' own approver asks only whether a user may have *some* node's certificate. Whoever holds the token of one
node could become any, so it is given no such right, and what is asked for is read here.
"""

import asyncio
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

import msgspec
from msgspec import Struct, field

from hostler.core.state.input_problems import UNREADABLE
from hostler.drivers.kubernetes.bootstrap_token_secret import SIGNER, SigningRequest, wrong_with
from hostler.drivers.kubernetes.bootstrap_tokens import BootstrapTokens, Token
from hostler.drivers.kubernetes.kube_api import CONFLICT, NOT_FOUND, OK, Api, checked
from hostler.drivers.kubernetes.wire import API_SERVER
from hostler.drivers.unreadable_answers import unreadable
from hostler.logs.structured import logger
from hostler.ports import PortError

log = logger()

TURN_S = 0.5
PAGE = "500"
REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"


class _Spec(Struct):
    signer: str = field(default="", name="signerName")
    user: str = field(default="", name="username")
    groups: tuple[str, ...] = ()
    usages: tuple[str, ...] = ()
    request: bytes = b""


class _CsrStatus(Struct):
    conditions: tuple[msgspec.Raw, ...] = ()


class _CsrMeta(Struct):
    name: str = ""


class _CsrItem(Struct):
    metadata: _CsrMeta
    spec: _Spec
    status: _CsrStatus = field(default_factory=_CsrStatus)


class _CsrList(Struct):
    items: tuple[msgspec.Raw, ...] = ()


class CsrApprover:
    """One cluster's. It asks the API server only while a token of ours lets somebody in."""

    def __init__(self, api: Api, joining: BootstrapTokens) -> None:
        self._api = api
        self._joining = joining

    async def run(self) -> None:
        """Decide until cancelled; what could not be decided is decided at the next turn."""
        while True:
            try:
                await self.turn()
            except PortError as error:
                log.info("certificates_not_looked_at", reason=str(error))
            await asyncio.sleep(TURN_S)

    async def turn(self) -> None:
        """Decide what is asked for now with tokens of ours. Raises PortError."""
        tokens = {f"system:bootstrap:{token.identity}": token for token in self._joining.outstanding()}
        if not tokens:
            return
        answer = await self._api.get(REQUESTS, fieldSelector=f"spec.signerName={SIGNER}", limit=PAGE)
        for raw in _read(checked(answer, "certificate requests")):
            asked = msgspec.json.decode(raw, type=_CsrItem)
            token = tokens.get(asked.spec.user)
            if token is not None and not asked.status.conditions:
                await self._decide(raw, asked, token)

    async def _decide(self, raw: msgspec.Raw, asked: _CsrItem, token: Token) -> None:
        spec, name = asked.spec, asked.metadata.name
        wanted = SigningRequest(name, spec.signer, spec.user, spec.groups, spec.usages, spec.request)
        wrong = wrong_with(wanted, token.identity, token.offer.name)
        if not wrong and token.signed not in ("", name):
            wrong = f"its token is used: {token.signed} was approved for it"
        if wrong:
            self._joining.deny(token, wrong)
        else:
            token.signed = name  # before it is sent: an answer that is lost approves no second one
        message = wrong or f"the kubelet of {token.offer.name} joins ({token.meant.operation})"
        body = _decided(raw, "Denied" if wrong else "Approved", message)
        answer = await self._api.change("PUT", f"{REQUESTS}/{quote(name, safe='')}/approval", body)
        if answer.status not in (OK, NOT_FOUND, CONFLICT):
            checked(answer, f"certificate request {name}")
        log.info("join_certificate_decided", node=token.meant.node, certificate_request=name, denied=wrong)


def _decided(raw: msgspec.Raw, verdict: str, message: str) -> dict[str, Any]:
    body: dict[str, Any] = msgspec.json.decode(raw)
    at = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
    condition = {"type": verdict, "status": "True", "reason": "HostlerJoin", "message": message, "lastUpdateTime": at}
    return {**body, "status": {**body.get("status", {}), "conditions": [condition]}}


def _read(body: bytes) -> tuple[msgspec.Raw, ...]:
    try:
        return msgspec.json.decode(body, type=_CsrList).items
    except UNREADABLE as wrong:
        raise unreadable("the API server's list of certificate requests", wrong, API_SERVER) from wrong
