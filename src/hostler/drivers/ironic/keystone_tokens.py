"""Tokens of a Keystone for an Ironic, through OpenStack's keystoneauth1; needs the extra `keystone`.

The library speaks in threads. A token is used until a minute before it expires, or until Ironic does not take it.
"""

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from hostler.drivers.checked_requests import site_requests
from hostler.ports import LoginRefusedError, RefusedError, Secrets, UnreachableError

try:
    from keystoneauth1 import exceptions
    from keystoneauth1.identity import v3
    from keystoneauth1.session import Session
except ImportError as error:
    MISSING = str(error)
else:
    MISSING = ""

EARLY = timedelta(seconds=60)
SCOPES = ("project_id", "project_name", "project_domain_id", "project_domain_name", "domain_id", "domain_name")
USERS = ("username", "user_id", "password", "user_domain_id", "user_domain_name")
APPLICATION = ("application_credential_id", "application_credential_secret", "application_credential_name")
MEND = "correct the secret that ironic.json names"


class KeystoneTokens:
    """The token that enters an Ironic: of a password or an application credential that a secret keeps."""

    def __init__(self, address: str, secret: str, secrets: Secrets, timeout_s: float) -> None:
        self._address = address
        self._secret = secret
        self._secrets = secrets
        self._timeout_s = timeout_s
        self._token = ""
        self._until = datetime.min.replace(tzinfo=UTC)
        self._one = asyncio.Lock()

    async def token(self, refused: str = "") -> str:
        """A token that is good for a while, another than the one that was `refused`. Raises PortError."""
        async with self._one:
            if self._token and self._token != refused and datetime.now(UTC) < self._until:
                return self._token
            fields = (await self._secrets.read(self._secret, anew=bool(refused))).fields
            self._token, expires = await asyncio.to_thread(self._issued, fields)
            self._until = expires - EARLY
            return self._token

    def _issued(self, fields: Mapping[str, str]) -> tuple[str, datetime]:
        """A new token and when it expires. Raises PortError, which tells none of the fields."""
        auth = _plugin(self._address, fields)
        try:
            access = auth.get_access(
                Session(auth=auth, session=site_requests(self._address), timeout=self._timeout_s, user_agent="hostler")
            )
        except (exceptions.Unauthorized, exceptions.Forbidden) as error:
            raise LoginRefusedError(f"Keystone lets us not in ({error.http_status}); {MEND}") from None
        except (exceptions.ConnectionError, exceptions.HttpServerError, exceptions.DiscoveryFailure) as error:
            raise UnreachableError(
                f"Keystone does not answer at {self._address}: {type(error).__name__}; see that it runs"
            ) from None
        except exceptions.ClientException as error:
            raise RefusedError(f"Keystone gives no token: {type(error).__name__}; {MEND}") from None
        return access.auth_token, access.expires


def _plugin(address: str, fields: Mapping[str, str]) -> Any:
    """How a token is asked for. Raises RefusedError for fields that ask for none."""
    given = {name: value for name, value in fields.items() if value}
    if given.get("application_credential_secret"):
        named: dict[str, Any] = {
            name: given[name] for name in (*APPLICATION, *USERS[3:], "username", "user_id") if name in given
        }
        return v3.ApplicationCredential(address, **named)
    if given.get("password") and (given.get("username") or given.get("user_id")):
        chosen: dict[str, Any] = {name: given[name] for name in (*USERS, *SCOPES, "system_scope") if name in given}
        return v3.Password(address, **chosen)
    raise RefusedError(
        "the secret for Ironic's Keystone holds neither username and password nor application_credential_id and "
        "application_credential_secret; write one of them"
    )
