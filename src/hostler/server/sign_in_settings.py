"""How people sign in through an OpenID provider: the file `oidc.json` in the data folder, checked whole."""

from pathlib import Path
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from hostler.core.state.input_problems import InvalidInputError, Problem
from hostler.server.tokens import Grant, InvalidGrantError, Role, check_grant

FILE = "oidc.json"
EXAMPLE = (
    '{"issuer": "https://login.example.org", "client_id": "hostler", "secret": "folder:oidc", '
    '"address": "https://hostler.example.org", "grants": [{"group": "gpu-operators", "role": "operator"}]}'
)
SESSION_LEAST_S, SESSION_MOST_S = 60.0, 86_400.0
GRANTS_MOST = 500


class GroupGrant(Struct, frozen=True, forbid_unknown_fields=True):
    """Rights of the members of a group: a role, and the site, pool or tenant that it is narrowed to ("": all)."""

    group: str
    role: Role
    site: str = ""
    pool: str = ""
    tenant: str = ""


class SignInSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """Provider and rules. `secret` names where the client's secret is kept, with a field `client_secret`.

    `address` is Hostler's own as people open it; the provider sends them back to `address`/sign-in/callback. Of
    `grants` the first whose group a person is in counts. `session_s`: for how long a sign-in lasts. `name_claim` and
    `groups_claim` are the claims that name a person and their groups.
    """

    issuer: str
    client_id: str
    secret: str
    address: str
    grants: tuple[GroupGrant, ...]
    scopes: tuple[str, ...] = ("openid", "profile", "email")
    name_claim: str = "email"
    groups_claim: str = "groups"
    session_s: float = 3_600.0

    @property
    def secure(self) -> bool:
        """Whether people open Hostler over TLS."""
        return self.address.startswith("https://")

    @property
    def redirect(self) -> str:
        """The address that the provider sends people back to."""
        return f"{self.address.rstrip('/')}/sign-in/callback"

    def grant(self, name: str, groups: frozenset[str]) -> Grant | None:
        """The grant of the person, None where no group of theirs is named."""
        found = next((one for one in self.grants if one.group in groups), None)
        if found is None:
            return None
        return Grant(name, found.role, site=found.site, pool=found.pool, tenant=found.tenant)


def read_sign_in(data: Path) -> SignInSettings | None:
    """The settings in the data folder, None where there is no such file. Raises InvalidInputError."""
    path = data / FILE
    if not path.exists():
        return None
    try:
        settings = msgspec.json.decode(path.read_bytes(), type=SignInSettings)
    except (msgspec.DecodeError, OSError) as error:
        raise InvalidInputError((Problem(str(path), 0, str(error), f"write {EXAMPLE}"),)) from error
    if problems := tuple(Problem(str(path), 0, what, instead) for what, instead in _problems(settings)):
        raise InvalidInputError(problems)
    return settings


def _problems(settings: SignInSettings) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for name, url in (("issuer", settings.issuer), ("address", settings.address)):
        parts = urlsplit(url)
        local = parts.hostname in ("localhost", "127.0.0.1", "::1")
        if parts.scheme not in ("https", "http") or not parts.netloc or parts.query or parts.fragment:
            found.append((f"{name} '{url[:100]}' is no address", "write https://HOST"))
        elif parts.scheme == "http" and not local:
            found.append((f"{name} is plain http, which anybody on the way reads", "write https://HOST"))
    if not SESSION_LEAST_S <= settings.session_s <= SESSION_MOST_S:
        span = f"{SESSION_LEAST_S:.0f} to {SESSION_MOST_S:.0f}"
        found.append((f"session_s is {settings.session_s:g}", f"write {span} seconds"))
    if not settings.grants or len(settings.grants) > GRANTS_MOST:
        found.append((f"{len(settings.grants)} grants", f"write 1 to {GRANTS_MOST}: who is in none may not sign in"))
    if "openid" not in settings.scopes:
        found.append(("scopes without openid", 'add "openid"'))
    for one in settings.grants:
        try:
            check_grant(Grant("somebody", one.role, site=one.site, pool=one.pool, tenant=one.tenant))
        except InvalidGrantError as error:
            found.append((f"group '{one.group[:60]}': {error}", "give it a grant that a token could have"))
        if one.role is Role.agent:
            found.append((f"group '{one.group[:60]}' would be an agent", "agents have tokens of their own"))
    return found
