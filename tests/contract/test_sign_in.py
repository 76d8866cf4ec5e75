"""Sign-in through an OpenID provider: a real one for what goes well, one that lies for what must not."""

import json
import re
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import aiohttp
import pytest
from aiohttp import web
from joserfc import jwt
from joserfc.jwk import OctKey, RSAKey
from msgspec.structs import replace

from hostler.core.state.input_problems import InvalidInputError
from hostler.ports import Secret
from hostler.server.oidc_provider import OidcProvider, SignIn
from hostler.server.routes.sign_in import local
from hostler.server.session_cookie import SESSION
from hostler.server.sign_in_settings import GroupGrant, SignInSettings, read_sign_in
from hostler.server.tokens import Grant, Role
from tests.contract.api_world import PATIENCE_S, POLICY, House, house, wide_fleet
from tests.end_to_end.processes import answers, free_port, process

GRANTS = (
    GroupGrant("gpu-operators", Role.operator),
    GroupGrant("technicians-ams", Role.technician, site="ams1"),
    GroupGrant("acme", Role.tenant, tenant="acme"),
    GroupGrant("alpha-operators", Role.operator, pool="alpha"),
)
PEOPLE = {
    "ada": ["everybody", "gpu-operators"],
    "tina": ["technicians-ams"],
    "pat": ["acme"],
    "pia": ["alpha-operators"],
    "eve": ["everybody"],
}


class Kept:
    async def read(self, name: str, *, anew: bool = False) -> Secret:
        return Secret({"client_secret": "s3cret"})


@asynccontextmanager
async def provider(folder: Path) -> AsyncIterator[str]:
    """A real provider (Authlib's server), a process of its own, with five people: its address."""
    port = free_port()
    people = [
        word
        for name, groups in PEOPLE.items()
        for word in (
            "--user-claims",
            json.dumps({"sub": name, "email": f"{name}@example.org", "email_verified": True, "groups": groups}),
        )
    ]
    argv = (sys.executable, "-m", "oidc_provider_mock", "--port", str(port), "--require-nonce", "true", *people)
    url = f"http://127.0.0.1:{port}"
    async with process(*argv, log=folder / "provider.log") as child, aiohttp.ClientSession() as session:
        await answers(session, f"{url}/.well-known/openid-configuration", PATIENCE_S, child)
        yield url


@pytest.fixture
async def issuer(tmp_path: Path) -> AsyncIterator[str]:
    async with provider(tmp_path) as url:
        yield url


def rules(issuer: str, address: str, **more: Any) -> SignInSettings:
    return SignInSettings(issuer, "hostler", "folder:oidc", address, GRANTS, **more)


@pytest.fixture
async def world(tmp_path: Path, issuer: str) -> AsyncIterator[House]:
    async with house(tmp_path) as world:
        signs_in(world, issuer)
        yield world


def signs_in(world: House, issuer: str, address: str = "", **more: Any) -> None:
    settings = rules(issuer, address or world.url, **more)
    sign_in = SignIn(settings, OidcProvider(settings, Kept(), world.session))
    world.app_state.outside = replace(world.app_state.outside, sign_in=sign_in)


class Browser:
    """A browser as far as sign-in goes: it keeps cookies by host, and says from which page it asks."""

    def __init__(self, world: House, session: aiohttp.ClientSession) -> None:
        self.url = world.url
        self.session = session

    async def sign_in(self, person: str, to: str = "/") -> aiohttp.ClientResponse:
        """Through the provider and back, where the answer to the code is what is returned."""
        async with self.session.get(f"{self.url}/sign-in/", params={"to": to}, allow_redirects=False) as begun:
            assert begun.status == 302, await begun.text()
            there = begun.headers["Location"]
        async with self.session.post(there, data={"sub": person}, allow_redirects=False) as agreed:
            back = agreed.headers["Location"]
        assert back.startswith(f"{self.url}/sign-in/callback?")
        return await self.session.get(back, allow_redirects=False)

    async def ask(self, method: str, path: str, **more: Any) -> tuple[int, Any]:
        async with self.session.request(method, self.url + path, **more) as answer:
            text = await answer.text()
            return answer.status, json.loads(text) if text else None


@pytest.fixture
async def browser(world: House) -> AsyncIterator[Browser]:
    jar = aiohttp.CookieJar(unsafe=True)
    async with aiohttp.ClientSession(cookie_jar=jar) as session:
        yield Browser(world, session)


@pytest.mark.parametrize(
    ("person", "role", "bounds"),
    [
        ("ada", "operator", {}),
        ("tina", "technician", {"site": "ams1"}),
        ("pat", "tenant", {"tenant": "acme"}),
        ("pia", "operator", {"pool": "alpha"}),
    ],
)
async def test_a_person_gets_what_their_group_may_do_and_is_back_where_the_link_led(
    world: House, browser: Browser, person: str, role: str, bounds: dict[str, str]
) -> None:
    """Mutants: the first group that is named instead of the first that is theirs; the scope is lost."""
    answer = await browser.sign_in(person, "/nodes/n1?tab=checks")
    assert (answer.status, answer.headers["Location"]) == (303, "/nodes/n1?tab=checks")
    status, me = await browser.ask("GET", "/v1/me")
    assert (status, me["name"], me["role"]) == (200, f"{person}@example.org", role)
    assert all(me[name] == value for name, value in bounds.items())


async def test_a_session_reaches_no_further_than_the_pool_of_its_group(world: House, browser: Browser) -> None:
    """Mutant: the session's token has the role and not the pool."""
    await world.adopt(1)
    await world.adopt(1, pool="beta", start=1)
    await browser.sign_in("pia")
    listed = (await browser.ask("GET", "/v1/nodes"))[1]["items"]
    assert [node["id"] for node in listed] == ["n0"]
    body = {"act": {"verb": "hold"}, "reason": "looking"}
    answers = [
        await browser.ask("POST", "/v1/intents", json=body | {"target": node}, headers={"Origin": world.url})
        for node in ("n0", "n1")
    ]
    assert [status for status, _ in answers] == [200, 403], answers


async def test_who_is_in_no_group_gets_nothing(world: House, browser: Browser) -> None:
    answer = await browser.sign_in("eve")
    assert answer.status == 403
    assert "in no group" in (await answer.json())["detail"]
    assert (await browser.ask("GET", "/v1/me"))[0] == 401


async def test_the_cookie_is_out_of_reach_of_scripts_and_other_sites(world: House, browser: Browser) -> None:
    answer = await browser.sign_in("ada")
    said = answer.headers["Set-Cookie"]
    assert said.startswith(f"{SESSION}=hst_")
    assert {"HttpOnly", "SameSite=Strict", "Path=/", "Max-Age=3600"} <= set(said.split("; "))
    assert "script-src 'self'" in answer.headers["Content-Security-Policy"]
    assert "unsafe-inline" not in answer.headers["Content-Security-Policy"]


async def test_a_session_changes_something_from_our_own_pages_alone(world: House, browser: Browser) -> None:
    """Cross-site requests: with no origin, another's, and ours. Mutant: `demand_own_page` asks nothing."""
    await browser.sign_in("ada")
    body = {"act": {"verb": "pause"}, "target": "fleet", "reason": "looking"}
    for headers in ({}, {"Origin": "https://evil.example"}, {"Origin": "null"}):
        status, answer = await browser.ask("POST", "/v1/intents", json=body, headers=headers)
        assert status == 403, answer
    status, answer = await browser.ask("POST", "/v1/intents", json=body, headers={"Origin": world.url})
    assert status == 200, answer
    recorded = [r.event for r in world.cell.journal.records() if "ada@example.org" in str(r.event)]
    assert recorded, "what was asked stands under the person's own name"


async def test_a_session_ends_where_it_is_ended_and_by_itself(world: House, browser: Browser) -> None:
    await browser.sign_in("ada")
    assert (await browser.ask("GET", "/sign-in/ways"))[1] == {"oidc": True, "session": True, "failure": ""}
    status, _ = await browser.ask("POST", "/sign-in/out", headers={"Origin": world.url})
    assert status == 204
    assert (await browser.ask("GET", "/v1/me"))[0] == 401
    assert (await browser.ask("GET", "/sign-in/ways"))[1] == {"oidc": True, "session": False, "failure": ""}
    grants = [identity.grant for identity in world.tokens.list()]
    assert not [grant for grant in grants if grant.name == "ada@example.org"]


async def test_a_code_in_another_browser_is_nobodys(world: House, browser: Browser) -> None:
    """Login CSRF: somebody is sent the attacker's callback. Mutant: the state is not compared."""
    async with browser.session.get(f"{world.url}/sign-in/", allow_redirects=False) as begun:
        there = begun.headers["Location"]
    async with browser.session.post(there, data={"sub": "ada"}, allow_redirects=False) as agreed:
        back = agreed.headers["Location"]
    async with aiohttp.ClientSession() as other, other.get(back, allow_redirects=False) as answer:
        assert answer.status == 400
        assert "Set-Cookie" not in answer.headers
    forged = re.sub(r"state=[^&]+", "state=x", back)
    async with browser.session.get(forged, allow_redirects=False) as answer:
        assert answer.status == 400


@pytest.mark.parametrize(
    "to", ["//evil.example", "https://evil.example/", "/\\evil.example", "javascript:x", "/a\nb", ""]
)
def test_nobody_is_sent_to_another_site_afterwards(to: str) -> None:
    assert local(to) == "/"


def test_links_of_our_own_lead_where_they_led() -> None:
    assert local("/nodes/n1?tab=checks") == "/nodes/n1?tab=checks"


# --- a person under several names


async def set_claims(issuer: str, subject: str, **claims: Any) -> None:
    """Have the provider know the person by these claims from now on; `None` leaves one out."""
    told = {name: value for name, value in claims.items() if value is not LEFT_OUT}
    async with aiohttp.ClientSession() as session, session.put(f"{issuer}/users/{subject}", json=told) as answer:
        assert answer.status == 204, await answer.text()


LEFT_OUT = object()
VERIFIED = {"true": True, "the text of Cognito and Apple": "true"}
UNVERIFIED = {
    "absent": LEFT_OUT, "false": False, "null": None, "zero": 0, "one": 1, "text false": "false", "text False": "False",
    "text True": "True", "text 1": "1", "empty text": "", "a list": [True], "an object": {"value": True},
}  # fmt: skip


async def test_a_mail_address_names_a_person_only_where_the_provider_says_it_is_verified(
    world: House, issuer: str, browser: Browser
) -> None:
    """Mutants: only `false` is not verified (as it was); whatever is true of a value in Python."""
    for said, value in {**UNVERIFIED, **VERIFIED}.items():
        await set_claims(issuer, "ada", email="ada@example.org", email_verified=value, groups=["gpu-operators"])
        answer = await browser.sign_in("ada")
        assert answer.status == (303 if said in VERIFIED else 502), (said, await answer.text())
        if said in UNVERIFIED:
            assert "email_verified: true" in (await answer.json())["detail"]
            assert (await browser.ask("GET", "/v1/me"))[0] == 401


async def test_an_unverified_address_is_no_name_where_another_claim_names_people(
    world: House, issuer: str, browser: Browser
) -> None:
    """Mutant: the address that somebody wrote into their own profile counts as theirs."""
    signs_in(world, issuer, name_claim="nickname", scopes=("openid", "profile", "email"))
    mail = {"email": "bob@example.org", "groups": ["gpu-operators"]}
    for verified, known in ((True, (f"{issuer}#ada", "bob@example.org")), (False, (f"{issuer}#ada",))):
        await set_claims(issuer, "ada", nickname="ada-l", email_verified=verified, **mail)
        assert (await browser.sign_in("ada")).status == 303
        grants = [identity.grant for identity in world.tokens.list() if identity.name == "ada-l"]
        assert known in [grant.known_as for grant in grants]


async def disturb_many(ask: Any, world: House) -> str:
    """Ask to drain a pool, which takes a second person: the approval."""
    status, answer = await ask("POST", "/v1/intents", json=DRAIN, headers={"Origin": world.url})
    assert status == 202, answer
    return str(answer["detail"]["approval"])


DRAIN = {"act": {"verb": "drain"}, "target": "pool:alpha", "reason": "moving"}


async def approve(ask: Any, world: House, approval: str) -> tuple[int, Any]:
    body = {"act": {"verb": "approve-request"}, "target": approval, "reason": "yes"}
    return await ask("POST", "/v1/intents", json=body, headers={"Origin": world.url})  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("name", "first"), [("ada", "token"), ("ADA", "sign-in"), ("lovelace", "token"), ("lovelace", "sign-in")]
)
async def test_a_token_and_a_sign_in_of_one_person_are_no_two_people(
    world: House, browser: Browser, name: str, first: str
) -> None:
    """Mutants: names alone, as it was; aliases count for requests after they were configured."""
    await world.make_room(12)
    await world.adopt(12)
    token = world.client(Grant(name, Role.operator))
    await browser.sign_in("ada")
    asks, approves = (token.call, browser.ask) if first == "token" else (browser.ask, token.call)
    approval = await disturb_many(asks, world)
    if name == "lovelace":
        await list_people(world, {"ada": ["lovelace", "ada@example.org"]})
    status, answer = await approve(approves, world, approval)
    assert status == 409, answer
    assert "a second person has to approve it" in answer["detail"]
    bob = world.client(Grant("bob", Role.operator))
    assert (await approve(bob.call, world, approval))[0] == 200


async def list_people(world: House, people: dict[str, list[str]]) -> None:
    """Configure who is who."""
    listed = f"{POLICY.rstrip()}\n  people: {json.dumps(people)}\n"
    documents = {"policy.yaml": listed, "fleet.yaml": wide_fleet(12)}
    status, answer = await world.operator.post("/v1/config", {"documents": documents, "reason": "who is who"})
    assert status == 200, answer


async def test_whose_address_the_provider_changed_is_the_same_person(
    world: House, issuer: str, browser: Browser
) -> None:
    """Mutants: the name alone; the subject of the first sign-in is forgotten."""
    await world.make_room(12)
    await world.adopt(12)
    await browser.sign_in("ada")
    approval = await disturb_many(browser.ask, world)
    await set_claims(issuer, "ada", email="l@example.org", email_verified=True, groups=["gpu-operators"])
    await browser.sign_in("ada")
    assert (await browser.ask("GET", "/v1/me"))[1]["name"] == "l@example.org"
    status, answer = await approve(browser.ask, world, approval)
    assert (status, "a second person" in answer["detail"]) == (409, True)
    token = world.client(Grant("ada", Role.operator))
    assert (await approve(token.call, world, approval))[0] == 409
    await set_claims(issuer, "pia", email="ada2@example.org", email_verified=True, groups=["gpu-operators"])
    await browser.sign_in("pia")
    assert (await approve(browser.ask, world, approval))[0] == 200, "another subject is another person"


# --- a provider that lies


class Liar:
    """A provider that does all as the real one does, but for one thing."""

    def __init__(self) -> None:
        self.url = ""
        self.key = RSAKey.generate_key(2048, {"kid": "k1"}, private=True)
        self.other = RSAKey.generate_key(2048, {"kid": "k1"}, private=True)
        self.lie = ""
        self.nonce = ""

    def app(self) -> web.Application:
        app = web.Application()
        app.router.add_get("/.well-known/openid-configuration", self._discovery)
        app.router.add_get("/keys", self._keys)
        app.router.add_post("/token", self._token)
        return app

    async def _discovery(self, _request: web.Request) -> web.Response:
        if self.lie == "html":
            return web.Response(text="<html>Sign in</html>", content_type="text/html")
        issuer = "https://other.example" if self.lie == "issuer" else self.url
        return web.json_response(
            {
                "issuer": issuer,
                "authorization_endpoint": f"{self.url}/authorize",
                "token_endpoint": f"{self.url}/token",
                "jwks_uri": f"{self.url}/keys",
            }
        )

    async def _keys(self, _request: web.Request) -> web.Response:
        return web.json_response({"keys": [self.key.as_dict(private=False)]})

    async def _token(self, request: web.Request) -> web.Response:
        form = await request.post()
        assert form["code_verifier"]
        assert request.headers["Authorization"].startswith("Basic ")
        now = int(time.time())
        claims: dict[str, Any] = {
            "iss": self.url,
            "aud": "hostler",
            "sub": "1",
            "nonce": self.nonce,
            "iat": now,
            "exp": now + 60,
            "email": "ada@example.org",
            "email_verified": True,
            "groups": ["gpu-operators"],
        }
        lies: dict[str, dict[str, Any]] = {
            "aud": {"aud": "another-client"},
            "azp": {"aud": ["hostler", "x"], "azp": "x"},
            "iss": {"iss": "https://other.example"},
            "nonce": {"nonce": "an older one"},
            "exp": {"exp": now - 600, "iat": now - 700},
            "unverified": {"email_verified": False},
            "no subject": {"sub": ["1"]},
            "no groups": {"groups": None},
        }
        claims.update(lies.get(self.lie, {}))
        header, key = {"alg": "RS256", "kid": "k1"}, self.other if self.lie == "key" else self.key
        if self.lie == "shared secret":
            token = jwt.encode({"alg": "HS256"}, claims, OctKey.import_key("s3cret" * 8))
        elif self.lie == "none":
            token = "eyJhbGciOiJub25lIn0.e30."
        else:
            token = jwt.encode(header, claims, key)
        return web.json_response({"access_token": "a", "token_type": "Bearer", "id_token": token})


@pytest.fixture
async def liar() -> AsyncIterator[Liar]:
    found = Liar()
    runner = web.AppRunner(found.app())
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    found.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield found
    await runner.cleanup()


LIES = ("aud", "azp", "iss", "nonce", "exp", "unverified", "no subject", "no groups", "key", "shared secret", "none")


@pytest.mark.parametrize("lie", ["", *LIES])
async def test_what_is_not_for_this_sign_in_is_not_believed(tmp_path: Path, liar: Liar, lie: str) -> None:
    """Each claim that is wrong by itself is refused; with none of them the same provider is believed."""
    liar.lie = lie
    async with house(tmp_path) as world, aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as session:
        signs_in(world, liar.url)
        async with session.get(f"{world.url}/sign-in/", allow_redirects=False) as begun:
            asked = parse_qs(urlsplit(begun.headers["Location"]).query)
        assert asked["code_challenge_method"] == ["S256"]
        liar.nonce = asked["nonce"][0]
        query = {"code": "c", "state": asked["state"][0]}
        async with session.get(f"{world.url}/sign-in/callback", params=query, allow_redirects=False) as answer:
            assert answer.status == (502 if lie else 303), await answer.text()
            assert ("Set-Cookie" in answer.headers) is not bool(lie)


@pytest.mark.parametrize("lie", ["issuer", "html"])
async def test_a_provider_that_is_another_is_not_asked(tmp_path: Path, liar: Liar, lie: str) -> None:
    liar.lie = lie
    async with house(tmp_path) as world, aiohttp.ClientSession() as session:
        signs_in(world, liar.url)
        async with session.get(f"{world.url}/sign-in/", allow_redirects=False) as answer:
            assert answer.status == 502


async def test_without_a_provider_cookies_are_nobodys(tmp_path: Path) -> None:
    async with house(tmp_path) as world, aiohttp.ClientSession() as session:
        cookie = {"Cookie": f"{SESSION}={world.operator.token}"}
        async with session.get(f"{world.url}/v1/me", headers=cookie) as answer:
            assert answer.status == 401
        async with session.get(f"{world.url}/sign-in/ways") as answer:
            assert await answer.json() == {"oidc": False, "session": False, "failure": ""}
        async with session.get(f"{world.url}/sign-in/", allow_redirects=False) as answer:
            assert (answer.status, answer.headers["Location"]) == (302, "/")


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"issuer": "login.example.org"}, "is no address"),
        ({"address": "http://hostler.example.org"}, "plain http"),
        ({"session_s": 999_999}, "session_s"),
        ({"grants": []}, "grants lists 0 groups"),
        ({"grants": [{"group": "g", "role": "tenant"}]}, "needs a tenant"),
        ({"grants": [{"group": "g", "role": "root"}]}, "root"),
        ({"grants": [{"group": "g", "role": "agent"}]}, "write one of operator, technician, tenant, viewer"),
        ({"scope": "openid"}, "unknown field"),
        ({"scopes": ["email"]}, "lacks openid"),
    ],
)
def test_a_file_that_is_wrong_is_refused_and_says_where(tmp_path: Path, changed: dict[str, Any], said: str) -> None:
    good = {
        "issuer": "https://login.example.org",
        "client_id": "hostler",
        "secret": "folder:oidc",
        "address": "https://hostler.example.org",
        "grants": [{"group": "gpu-operators", "role": "operator"}],
    }
    (tmp_path / "oidc.json").write_text(json.dumps(good))
    assert read_sign_in(tmp_path) is not None
    (tmp_path / "oidc.json").write_text(json.dumps(good | changed))
    with pytest.raises(InvalidInputError) as refused:
        read_sign_in(tmp_path)
    assert said in str(refused.value)
