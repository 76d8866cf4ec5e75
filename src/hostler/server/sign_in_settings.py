"""How people sign in through an OpenID provider: the file `oidc.json` in the data folder, checked whole."""

from collections.abc import Iterator
from ipaddress import ip_network
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from hostler.core.state.input_problems import InvalidInputError, Problem, WrongEntry
from hostler.server.tokens import Grant, InvalidGrantError, Role, check_grant

FILE = "oidc.json"
EXAMPLE = (
    '{"issuer": "https://login.example.org", "client_id": "hostler", "secret": "folder:oidc", '
    '"address": "https://hostler.example.org", "grants": [{"group": "gpu-operators", "role": "operator"}]}'
)
SESSION_LEAST_S, SESSION_MOST_S = 60.0, 86_400.0
GRANTS_MOST = 500


class SignedIn(Struct, frozen=True):
    """A person as the provider names them, and their groups. `known_as`: ISSUER#SUBJECT, and their verified mail."""

    name: str
    groups: frozenset[str]
    known_as: tuple[str, ...] = ()


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
    `groups_claim` are the claims that name a person and their groups. `networks`: private networks in which the
    provider's endpoints lie, where they have another host than the issuer.
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
    networks: tuple[str, ...] = ()

    @property
    def secure(self) -> bool:
        """Whether people open Hostler over TLS."""
        return self.address.startswith("https://")

    @property
    def redirect(self) -> str:
        """The address that the provider sends people back to."""
        return f"{self.address.rstrip('/')}/sign-in/callback"

    def grant(self, who: SignedIn) -> Grant | None:
        """The grant of the person, None where no group of theirs is named."""
        found = next((one for one in self.grants if one.group in who.groups), None)
        if found is None:
            return None
        reach = Grant(who.name, found.role, site=found.site, pool=found.pool, tenant=found.tenant)
        return replace(reach, known_as=who.known_as)


def read_sign_in(data: Path) -> SignInSettings | None:
    """The settings in the data folder, None where there is no such file. Raises InvalidInputError."""
    path = data / FILE
    if not path.exists():
        return None
    try:
        settings = msgspec.json.decode(path.read_bytes(), type=SignInSettings)
    except (msgspec.DecodeError, OSError) as error:
        raise InvalidInputError((Problem(str(path), 0, str(error), f"write {EXAMPLE}"),)) from error
    if problems := tuple(Problem(str(path), 0, one.what, one.instead) for one in _wrong(settings)):
        raise InvalidInputError(problems)
    return settings


def _wrong(settings: SignInSettings) -> Iterator[WrongEntry]:
    yield from _wrong_address("issuer", settings.issuer)
    yield from _wrong_address("address", settings.address)
    if not SESSION_LEAST_S <= settings.session_s <= SESSION_MOST_S:
        span = f"{SESSION_LEAST_S:.0f} to {SESSION_MOST_S:.0f}"
        yield WrongEntry(f"session_s is {settings.session_s:g}", f"write {span} seconds")
    if not settings.grants or len(settings.grants) > GRANTS_MOST:
        rest = "who is in none may not sign in"
        yield WrongEntry(f"grants lists {len(settings.grants)} groups", f"write 1 to {GRANTS_MOST}: {rest}")
    if "openid" not in settings.scopes:
        yield WrongEntry("scopes lacks openid, without which a provider names nobody", 'add "openid"')
    for one in settings.grants:
        yield from _wrong_grant(one)
    for network in settings.networks:
        try:
            ip_network(network)
        except ValueError as error:
            yield WrongEntry(f"networks: {error}", 'write networks such as "10.1.0.0/16"')


def _wrong_address(name: str, url: str) -> Iterator[WrongEntry]:
    parts = urlsplit(url)
    if parts.scheme not in ("https", "http") or not parts.netloc or parts.query or parts.fragment:
        yield WrongEntry(f"{name} '{url[:100]}' is no address", "write https://HOST")
    elif parts.scheme == "http" and parts.hostname not in ("localhost", "127.0.0.1", "::1"):
        yield WrongEntry(f"{name} is plain http, which anybody on the way reads", "write https://HOST")


def _wrong_grant(one: GroupGrant) -> Iterator[WrongEntry]:
    group = f"group '{one.group[:60]}'"
    if one.role is Role.agent:
        people = ", ".join(role.value for role in Role if role is not Role.agent)
        yield WrongEntry(f"{group} has the role of an agent, which nobody signs in as", f"write one of {people}")
        return
    try:
        check_grant(Grant("somebody", one.role, site=one.site, pool=one.pool, tenant=one.tenant))
    except InvalidGrantError as error:
        yield WrongEntry(f"{group}: {error}", "change its role, site, pool or tenant to what a token may have")
