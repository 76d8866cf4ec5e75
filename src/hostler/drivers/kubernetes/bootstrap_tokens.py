"""Issues the tokens by which kubelets join one cluster, keeps their secret halves, and deletes them when they are over.

The secret half is in this process alone: who takes over as the controller issues a token anew. It never reads a Secret.
"""

import secrets
from collections import OrderedDict
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote

from msgspec import Struct

from hostler.core.diagnose.line import printable
from hostler.core.state.join_offer import JoinOffer
from hostler.core.state.model import Node, Operation
from hostler.core.state.operations import ConfirmJoin, IssueJoinToken, JoinCluster
from hostler.drivers.kubernetes.api_endpoint import CLUSTER_INFO, ApiEndpoint, read_cluster_info
from hostler.drivers.kubernetes.bootstrap_token_secret import (
    ALPHABET,
    SECRET_LENGTH,
    SPACE,
    Meant,
    body_of,
    ca_hash,
    secret_name,
    token_id,
)
from hostler.drivers.kubernetes.cordon import CORDON, EFFECT
from hostler.drivers.kubernetes.kube_api import CONFLICT, FORBIDDEN, NOT_FOUND, OK, Api, checked
from hostler.logs.structured import logger
from hostler.ports import ConflictError, RefusedError

log = logger()

PLANS_KEPT = 100_000
"""Of so many plans it is remembered that their token was issued here."""
DENIED_KEPT, WHY_CHARS = 4, 160
"""Denials of a node's token that are kept for its records, and how much of each reason."""

SECRETS = f"/api/v1/namespaces/{SPACE}/secrets"


class Token(Struct):
    """Token that was issued: for whom, what is offered, and the requests for certificates that were signed for it."""

    meant: Meant
    identity: str
    offer: JoinOffer
    signed: str = ""


class BootstrapTokens:
    """One cluster's tokens."""

    def __init__(self, cluster: str, api: Api, owner: str) -> None:
        self._cluster = cluster
        self._api = api
        self._owner = owner
        self._tokens: dict[str, Token] = {}
        self._plans: OrderedDict[str, None] = OrderedDict()
        self._denied: OrderedDict[str, list[str]] = OrderedDict()

    def deny(self, token: Token, why: str) -> None:
        """Note that a certificate was asked for with this token and is not to be had, and why."""
        denied = self._denied.setdefault(token.meant.node, [])
        denied.append(printable(why[:WHY_CHARS]))
        del denied[:-DENIED_KEPT]
        if len(self._denied) > PLANS_KEPT:
            self._denied.popitem(last=False)

    def denials(self, node: str) -> str:
        """Denials to whoever had the node's token, for its records; "" where nothing was."""
        if not (denied := self._denied.get(node)):
            return ""
        return f"certificates asked for with its token were denied: {'; '.join(dict.fromkeys(denied))}"

    def offer(self, node: str) -> JoinOffer | None:
        """Join offer for the node, None without one."""
        return next((token.offer for token in self.outstanding() if token.meant.node == node), None)

    def outstanding(self) -> Iterator[Token]:
        """The tokens that let somebody in now."""
        now = datetime.now(UTC)
        for node, token in list(self._tokens.items()):
            if token.offer.expires <= now:
                del self._tokens[node]
            else:
                yield token

    def lets_in(self, operation: Operation, node: Node) -> bool:
        """Whether nothing is to be issued for the operation any more: its token stands, or its policy wants none."""
        return not _ttl_s(operation) or (self.offer(node.id) is not None and operation.plan in self._plans)

    def is_strange(self, operation: Operation) -> bool:
        """Whether the operation's plan has a token whose secret half this process never knew."""
        return bool(_ttl_s(operation)) and operation.plan not in self._plans

    async def issue(self, operation: Operation, node: Node, name: str) -> None:
        """See to it that a token lets the node in, unless its policy wants none. Raises PortError.

        One that stands is not issued again. What an earlier controller issued for the same plan is replaced, as
        nobody knows its secret any more.
        """
        ttl_s = _ttl_s(operation)
        standing = self.offer(node.id)
        if not ttl_s or (standing is not None and self._tokens[node.id].meant.operation == operation.id):
            return
        meant = Meant(node.id, name, operation.id, operation.plan)
        endpoint, identity = await self._door(), token_id(self._owner, self._cluster, meant)
        secret = "".join(secrets.choice(ALPHABET) for _ in range(SECRET_LENGTH))
        expires = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=ttl_s)
        await self._create(identity, body_of(identity, secret, meant, expires))
        shown = f"{identity}.{secret}"
        door = (self._cluster, name, endpoint.server, endpoint.ca, ca_hash(endpoint.ca))
        offer = JoinOffer(*door, shown, expires, f"{CORDON}={self._owner}:{EFFECT}")
        self._tokens[node.id] = Token(meant, identity, offer)
        self._denied.pop(node.id, None)
        self._plans[operation.plan] = None
        if len(self._plans) > PLANS_KEPT:
            self._plans.popitem(last=False)
        log.info("join_token_issued", node=node.id, operation=operation.id, token_id=identity)

    async def withdraw(self, operation: Operation, node: Node, name: str) -> None:
        """Delete the token of this operation's plan, if there is one. Raises PortError."""
        self._tokens.pop(node.id, None)
        answer = await self._delete(self._path(operation, node, name))
        if answer not in (OK, NOT_FOUND):
            log.warning("join_token_left", node=node.id, status=answer)

    async def is_withdrawn(self, operation: Operation, node: Node, name: str) -> bool:
        """Whether no token of this operation is left. Deleting is only tried: reading Secrets is no right of ours."""
        if not _ttl_s(operation):
            return True
        return await self._delete(self._path(operation, node, name), dryRun="All") != OK

    def _path(self, operation: Operation, node: Node, name: str) -> str:
        meant = Meant(node.id, name, operation.id, operation.plan)
        return f"{SECRETS}/{quote(secret_name(token_id(self._owner, self._cluster, meant)), safe='')}"

    async def _create(self, identity: str, body: dict[str, Any]) -> None:
        for _ in range(2):
            answer = await self._api.change("POST", SECRETS, body)
            if answer.status == FORBIDDEN:
                instead = "give that right (deploy/kubernetes/rbac.yaml), or set join_token_ttl_s: 0 in the policy"
                raise RefusedError(f"may not create join tokens in {SPACE} of cluster {self._cluster}: {instead}")
            if answer.status != CONFLICT:
                checked(answer, f"join token {identity}")
                return
            await self._delete(f"{SECRETS}/{secret_name(identity)}")
        raise ConflictError(
            f"join token {identity} already exists after each try: another program issues it too"
            "; stop that program, or let it leave tokens of this name"
        )

    async def _delete(self, path: str, **query: str) -> int:
        """The status of the answer: gone, never there, or not ours to delete. Raises PortError for any other."""
        answer = await self._api.change("DELETE", path, {}, query=query)
        if answer.status not in (NOT_FOUND, FORBIDDEN):
            checked(answer, "join token")
        return answer.status

    async def _door(self) -> ApiEndpoint:
        """As the cluster itself says (kubeadm's cluster-info), else as our own kubeconfig does."""
        answer = await self._api.get(CLUSTER_INFO)
        if answer.status == OK and (said := read_cluster_info(answer.body)) is not None:
            return said
        if self._api.endpoint is None:
            instead = "write the ConfigMap kube-public/cluster-info as kubeadm does, or give --cluster a kubeconfig"
            raise RefusedError(f"where nodes reach the API server of cluster {self._cluster} is not known: {instead}")
        return self._api.endpoint


def _ttl_s(operation: Operation) -> float:
    """How long the token of a join may last, 0 where there is to be none."""
    return operation.act.token_ttl_s if isinstance(operation.act, JoinCluster | ConfirmJoin | IssueJoinToken) else 0.0
