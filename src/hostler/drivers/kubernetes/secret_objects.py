"""Secrets of a Kubernetes cluster as a place of secrets: read and written by name through its API.

Only Secrets of one namespace are touched, which holds nothing else; `deploy/kubernetes/bmc-secrets.yaml` grants that.
"""

import base64
import binascii
import re
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from hostler.drivers.kubernetes.kube_api import MANAGER, Api, KubeResponse
from hostler.drivers.kubernetes.wire import API_SERVER
from hostler.drivers.unreadable_answers import unreadable
from hostler.ports import ConflictError, RefusedError, Secret, StoredSecret, UnreachableError

KIND = "Opaque"
_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?", re.ASCII)
_NEVER = frozenset({400, 401, 403, 405, 413, 422})


class _Meta(Struct):
    resourceVersion: str = ""  # noqa: N815 - the API's own name


class _Object(Struct):
    metadata: _Meta = msgspec.field(default_factory=_Meta)
    type: str = KIND
    data: dict[str, str] | None = None


class SecretObjects:
    """Secrets of one namespace, by name. Whoever wrote between a read and a write is never written over."""

    def __init__(self, api: Api, namespace: str) -> None:
        self._api = api
        self._place = f"/api/v1/namespaces/{namespace}/secrets"
        self._namespace = namespace

    async def read(self, name: str, *, anew: bool = False) -> Secret:  # noqa: ARG002 - it is always read anew
        """The fields of the Secret. Raises RefusedError, UnreachableError."""
        found = await self.fetch(name)
        if not found.fields:
            raise RefusedError(
                f"namespace {self._namespace} has no Secret {name}, or an empty one"
                "; create it with the fields username and password"
            )
        return Secret(found.fields)

    async def fetch(self, name: str) -> StoredSecret:
        """The Secret as it is now; no fields where there is none. Raises RefusedError, UnreachableError."""
        _check(name)
        answer = await self._api.get(f"{self._place}/{name}")
        if answer.status == 404:
            return StoredSecret({})
        _demand_ok(answer, f"Secret {self._namespace}/{name}")
        try:
            found = msgspec.json.decode(answer.body, type=_Object)
        except msgspec.MsgspecError:
            raise unreadable(f"the API server's Secret {name}", "it is no Secret", API_SERVER) from None
        if found.type != KIND:
            raise RefusedError(
                f"Secret {self._namespace}/{name} is of type {found.type[:100]}, not {KIND}; create it anew as {KIND}"
            )
        return StoredSecret(_decoded(found.data or {}, name), found.metadata.resourceVersion)

    async def store(self, name: str, fields: Mapping[str, str], version: str) -> None:
        """Keep these fields in the place of that version. Raises ConflictError, RefusedError, UnreachableError."""
        _check(name)
        body = _body(name, fields, version)
        method, path = ("PUT", f"{self._place}/{name}") if version else ("POST", self._place)
        answer = await self._api.change(method, path, body)
        if answer.status in (404, 409):  # 404: somebody has deleted what was read
            raise self._changed(name)
        _demand_ok(answer, f"Secret {self._namespace}/{name}")

    async def erase(self, name: str, version: str) -> None:
        """Delete the Secret of that version. Raises ConflictError, RefusedError, UnreachableError."""
        _check(name)
        if not version:
            return
        body = {"preconditions": {"resourceVersion": version}}
        answer = await self._api.change("DELETE", f"{self._place}/{name}", body)
        if answer.status == 409:
            raise self._changed(name)
        if answer.status != 404:
            _demand_ok(answer, f"Secret {self._namespace}/{name}")

    def _changed(self, name: str) -> ConflictError:
        return ConflictError(
            f"Secret {self._namespace}/{name} has changed since it was read; it is read and decided again"
        )


def _check(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise RefusedError(f"'{name[:130]}' is no name of a Secret: use lower-case letters, digits, - and .")


def _body(name: str, fields: Mapping[str, str], version: str) -> dict[str, Any]:
    meta = {"name": name, "labels": {"app.kubernetes.io/managed-by": MANAGER}}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": KIND,
        "metadata": meta | ({"resourceVersion": version} if version else {}),
        "data": {key: base64.b64encode(value.encode()).decode() for key, value in fields.items()},
    }


def _decoded(data: Mapping[str, str], name: str) -> dict[str, str]:
    try:
        return {key: base64.b64decode(value).decode().removesuffix("\n") for key, value in data.items()}
    except (binascii.Error, UnicodeDecodeError):
        raise RefusedError(f"Secret {name} has a field that is no UTF-8 text; write its fields as text") from None


def _demand_ok(answer: KubeResponse, what: str) -> None:
    """Raises what the status means. The API's own words are not quoted: they may repeat what was sent."""
    if 200 <= answer.status < 300:
        return
    if answer.status in _NEVER:
        ends = "Hostler's account needs get, create, update, delete of Secrets (deploy/kubernetes/bmc-secrets.yaml)"
        raise RefusedError(f"the API refuses {what} with {answer.status}: {ends}")
    raise UnreachableError(f"the API server answered {answer.status} for {what}; it is asked again")
