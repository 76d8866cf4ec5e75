"""Asks a provider's service over its webhook: one signed request each, bounded in time and size."""

import time
from collections.abc import Callable, Mapping

from msgspec import Struct

from hostler.core.state.provider import MaintenanceNotice
from hostler.drivers.provider import wire
from hostler.drivers.provider.wire import ContractAnswer, ProviderRequest
from hostler.drivers.target_http import HttpAnswer, NetworkLimits, host_of, post, retry_after_s, said
from hostler.ports import BusyTargetError, LoginRefusedError, RefusedError, Secrets, UnreachableError

MOST_BYTES = 1024 * 1024


class ProviderAccess(Struct, frozen=True, forbid_unknown_fields=True):
    """Address of a provider's service, and the secret whose field `key` signs what is asked of it.

    `networks` are private networks that it may lie in, `ca` a PEM file of authorities beside the system's.
    """

    url: str
    secret: str
    networks: tuple[str, ...] = ()
    ca: str = ""
    timeout_s: float = 30.0


class Providers:
    """The providers of a cell by name. Every call raises only PortError."""

    def __init__(
        self, access: Mapping[str, ProviderAccess], secrets: Secrets, clock: Callable[[], float] = time.time
    ) -> None:
        self._access = access
        self._secrets = secrets
        self._clock = clock

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the providers, as nodes are bound to them."""
        return tuple(sorted(self._access))

    def host(self, name: str) -> str:
        """The host of a provider's service, for people."""
        return host_of(self._access[name].url)

    async def notices(self, name: str) -> tuple[MaintenanceNotice, ...]:
        """Maintenance that the provider has scheduled. Raises PortError."""
        return (await self.ask(ProviderRequest(wire.CONTRACT, "notices", name))).notices

    async def ask(self, asked: ProviderRequest) -> ContractAnswer:
        """Send one question once. Raises RefusedError, and UnreachableError where it may have been carried out."""
        access = self._access.get(asked.provider)
        if access is None:
            raise RefusedError(
                f"no provider '{asked.provider}' is named in provider.json; name it there, or rebind the node"
            )
        fields = (await self._secrets.read(access.secret)).fields
        letter = wire.letter(asked, access.url, fields, int(self._clock()))
        if not letter.url.startswith("https://") and not access.networks:
            raise RefusedError(
                f"provider {asked.provider}: its address is not https://; write https:// in provider.json"
            )
        reply = await post(letter, NetworkLimits(access.networks, access.ca, access.timeout_s, MOST_BYTES))
        _demand_taken(reply, asked.provider)
        try:
            return wire.answer(reply.body)
        except wire.ProviderWireError as error:
            raise UnreachableError(f"provider {asked.provider}: {error}; see docs/reference/provider.md") from error


def _demand_taken(reply: HttpAnswer, name: str) -> None:
    """Raise what the status means, nothing for a success. Any 5xx may have been carried out."""
    if 200 <= reply.status < 300:
        return
    match reply.status:
        case 401 | 403:
            raise LoginRefusedError(
                f"provider {name} does not accept our signature ({reply.status}): give both the same key, "
                "and see that both clocks are right"
            )
        case 429 | 503:
            raise BusyTargetError(
                f"provider {name} takes no more now ({reply.status}); it is asked again", retry_after_s(reply)
            )
        case status if status >= 500:
            raise UnreachableError(f"provider {name} failed at it ({status}){said(reply)}; see its own log")
        case status:
            raise RefusedError(f"provider {name} refuses the request ({status}){said(reply)}; see its own log")
