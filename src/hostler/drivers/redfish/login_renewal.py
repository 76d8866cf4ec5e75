"""Renews the password of one BMC: kept as pending, set, proved by a login, promoted. Cut off anywhere, it goes on.

What is kept comes before what is set, so that no password is ever on a BMC alone. A wrong password is counted where the
login is kept before the BMC is shown it, so that tries of several runs add up to fewer than lock the account.
"""

from collections.abc import Awaitable, Callable

from msgspec import Struct
from msgspec.structs import replace

from hostler.drivers.redfish import kept_login
from hostler.drivers.redfish.client import RedfishClient
from hostler.drivers.redfish.kept_login import Draw, Entry, KeptLogin
from hostler.drivers.redfish.wire_accounts import AccountSlot, PasswordRules
from hostler.ports import ConflictError, LoginRefusedError, RefusedError, SecretStore, UnreachableError

NOBODY = Entry("", "", "")
"""An entry without a password: whether a BMC is there is asked as nobody."""


class Renewed(Struct, frozen=True):
    """A password that was proved, and how the BMC was entered before."""

    kept: KeptLogin
    entered_by: str


class EntryDoor(Struct, frozen=True):
    """How a BMC is entered: `enter` makes a client for a way in, `known` checks whose BMC it is once it lets one in.

    `certificate` is the one that it is known by, "" where another authority vouches for it.
    """

    enter: Callable[[Entry], RedfishClient]
    known: Callable[[RedfishClient], Awaitable[None]]
    certificate: str = ""


class NotKeptError(UnreachableError):
    """The BMC said yes to the new password and does not take it: it may yet, and is asked again."""


class LoginRenewal:
    """One renewal of the login that is kept under a name."""

    def __init__(self, store: SecretStore, name: str, door: EntryDoor, draw: Draw) -> None:
        self._store = store
        self._name = name
        self._enter = door.enter
        self._known = door.known
        self._certificate = door.certificate
        self._draw = draw
        self._version = ""
        self._change_first = False
        self._seen: set[str] = set()
        self.kept = KeptLogin()

    async def load(self) -> KeptLogin:
        """Read what is kept of the login now."""
        found = await self._store.fetch(self._name)
        self.kept, self._version = kept_login.read(found.fields), found.version
        self._seen |= {*self.kept.passwords}
        return self.kept

    async def renew(self, operation: str, factory: KeptLogin, refused: str, *, anew: bool) -> Renewed:
        """The password that is proved in the end. Raises PortError; nothing is lost wherever it was cut off.

        `refused`: a password that was turned away just now, and is not shown again; `anew`: a person has said that
        tries count from none.
        """
        await self.load()
        if self.kept.pending == factory.password:  # a retirement that came to nothing was about to set it
            await self._keep(replace(self.kept, pending=""))
        if anew and self.kept.tried:
            await self._keep(replace(self.kept, tried=0))
        if refused and refused == self.kept.password and not self.kept.tried:  # a look at the BMC has shown it
            await self._keep(replace(self.kept, tried=1))
        way = await self._way_in(factory, refused)
        if way.password == self.kept.pending:  # it was set before something was cut off
            return await self._promoted(operation, way)
        client = self._enter(way)
        rules = await self._rules(client)
        account = await self._account(client, rules, way.username)
        await self._plan(rules, way)
        await self._set(client, account)
        if not await self._proved(Entry("the new password", way.username, self.kept.pending)):
            raise await self._not_kept(way)
        return await self._promoted(operation, way)

    async def give_back(self, factory: KeptLogin) -> str:
        """The BMC takes its vendor's password and ours no more; then nothing is kept. Says by what it was entered.

        Raises PortError. Cut off anywhere, the BMC's password is one that is kept or the vendor's, and it goes on.
        """
        await self.load()
        if not factory.password:
            raise RefusedError("the vendor's login has no password to set; write it into the `factory` secret")
        if not self.kept.passwords:
            entered_by = await self.vendor_has_it(factory)
            await self._store.erase(self._name, self._version)
            return entered_by
        if self.kept.username not in ("", factory.username):
            raise RefusedError(
                f"account '{self.kept.username[:64]}' is not the vendor's, which alone gets the vendor's password back"
                "; remove it from the BMC, then retire the node with --credentials-left"
            )
        way = await self._way_in(factory, "")
        client = self._enter(way)
        if not self._change_first:
            await self._known(client)
        if way.password != factory.password:
            await self._plan_back(way, factory)
            await self._set(client, await self._account(client, await client.password_rules(), way.username))
        await self._prove_given_back(Entry("the factory login", way.username, factory.password))
        await self._store.erase(self._name, self._version)
        return way.what

    async def _plan_back(self, way: Entry, factory: KeptLogin) -> None:
        """Keep the vendor's password as the one that is about to be set; one that was made and not proved stays too."""
        before = self.kept.pending if self.kept.pending not in ("", way.password, factory.password) else ""
        kept = replace(self.kept, username=way.username, password=way.password, pending=factory.password, tried=0)
        await self._keep(replace(kept, previous=before or self.kept.previous))

    async def vendor_has_it(self, factory: KeptLogin) -> str:
        """Prove by the vendor's login that what was kept was erased before a cut. Raises RefusedError."""
        where = (await self._enter(NOBODY).root()).accounts
        back = Entry("the factory login", factory.username, factory.password)
        client = self._enter(back)
        said = await client.enters(where)
        if said == "no":
            raise RefusedError(
                "no password of this BMC is kept, and its vendor's does not enter: nobody can wipe it"
                "; reset its account, or retire the node with --credentials-left"
            )
        if said == "yes":  # one that demands another password first shows nobody whose it is
            await self._known(client)
        return back.what

    async def _prove_given_back(self, back: Entry) -> None:
        """The vendor's first: a wrong one then stands beside a right one. Raises PortError where it is not so."""
        ours = Entry("our password", back.username, self.kept.password)
        if not await self._proved(back):
            if await self._proved(ours):
                raise NotKeptError(
                    "the BMC took its vendor's password and refuses it, and ours still enters"
                    "; look at the BMC's password rules"
                )
            raise LoginRefusedError(
                "the BMC took its vendor's password and lets neither it nor ours in; ours is kept"
                "; reset its account, or retire the node with --credentials-left"
            )
        if ours.password not in ("", back.password) and await self._proved(ours):
            raise NotKeptError(
                "the BMC took its vendor's password and still lets ours in; look for a second account of that name"
            )

    async def _way_in(self, factory: KeptLogin, refused: str) -> Entry:
        """The first way in that is taken. Raises LoginRefusedError where none is, or no more may be tried."""
        tried = []
        for way in kept_login.entries(self.kept, factory, refused):
            if self.kept.tried >= self.kept.tries:
                break
            if await self._proved(way):
                return way
            tried.append(way.what)
        allowed, spent = self.kept.tries, self.kept.tried
        if spent >= allowed:
            raise LoginRefusedError(
                f"{spent} wrong passwords were shown, and one more may lock the account; find out which password the "
                "BMC has, write it into the secret, then `hostler bmc credentials rotate NODE --anew` (`--dpu ADDRESS` "
                "for a DPU's), of an asset `hostler asset renew-login ASSET --anew`"
            )
        told = " and ".join(tried) or "no password that is kept, nor a factory login, is left to try"
        raise LoginRefusedError(
            f"the BMC refuses {told}: write the password that it has into the secret, or reset its account"
        )

    async def _proved(self, way: Entry) -> bool:
        """Whether the BMC takes it; counted as wrong until it has. One that is away is shown nothing."""
        where = (await self._enter(NOBODY).root()).accounts
        username = self.kept.username or way.username
        await self._keep(replace(self.kept, username=username, tried=self.kept.tried + 1))
        said = await self._enter(way).enters(where)
        if said == "no":
            return False
        self._change_first = said == "change"
        await self._keep(replace(self.kept, tried=0))
        return True

    async def _rules(self, client: RedfishClient) -> PasswordRules:
        """The rules of a BMC that is the node's; one that wants a new password first shows both afterwards."""
        if self._change_first:
            return PasswordRules()
        await self._known(client)
        return await client.password_rules()

    async def _account(self, client: RedfishClient, rules: PasswordRules, username: str) -> AccountSlot:
        """The one slot of this name that is enabled. Raises RefusedError for none and for several."""
        accounts = rules.accounts or f"{(await client.root()).accounts.rstrip('/')}/Accounts"
        named = [slot for slot in await client.slots(accounts) if slot.username == username]
        enabled = [slot for slot in named if slot.enabled]
        if len(enabled) == 1:
            return enabled[0]
        places = ", ".join(slot.path for slot in named) or "none"
        raise RefusedError(
            f"{len(enabled)} enabled accounts are called '{username[:64]}' ({places[:300]}): leave one of that name"
        )

    async def _plan(self, rules: PasswordRules, way: Entry) -> None:
        """Keep the password that is about to be set, with the one that enters now."""
        lockout = rules.lockout or self.kept.lockout
        kept = replace(self.kept, username=way.username, lockout=lockout, tried=0)
        if way.what != "the factory login":
            kept = replace(kept, password=way.password)
        if not kept.pending:
            try:
                kept = replace(kept, pending=kept_login.make_password(rules, self._draw))
            except ValueError as error:
                raise RefusedError(f"no password can be made: {error}") from error
        await self._keep(kept)

    async def _set(self, client: RedfishClient, account: AccountSlot) -> None:
        """Ask the BMC. What it refuses by its rules is not kept: the next run makes another."""
        try:
            async with client.alone:
                await client.set_password(account, self.kept.pending)
        except LoginRefusedError:
            raise
        except RefusedError:
            await self._keep(replace(self.kept, pending=""))
            raise

    async def _not_kept(self, way: Entry) -> Exception:
        """Why the new password does not enter; the old one is proved, which ends the BMC's own count of wrong ones."""
        if await self._proved(way):
            return NotKeptError(
                "the BMC took the new password and refuses it; the one before still enters"
                "; look at the BMC's password rules"
            )
        return LoginRefusedError(
            "the BMC took the new password and lets neither it nor the one before in; both are kept"
            "; find out which it has, and write that one into the secret"
        )

    async def _promoted(self, operation: str, way: Entry) -> Renewed:
        """The pending password becomes the one that is used; the one before is kept."""
        client = self._enter(Entry("the new password", way.username, self.kept.pending))
        kept = replace(self.kept, username=way.username, certificate=self._certificate)
        if not kept.lockout:
            kept = replace(kept, lockout=(await client.password_rules()).lockout)
        await self._keep(kept.set_on_bmc(operation))
        await self._known(client)
        return Renewed(self.kept, way.what)

    async def _keep(self, kept: KeptLogin) -> None:
        """Write it down, durably, before anything else happens."""
        if kept == self.kept:
            return
        self._seen |= {*kept.passwords}
        await self._store.store(self._name, kept.fields, self._version)
        found = await self._store.fetch(self._name)
        if kept_login.read(found.fields) != kept:
            raise ConflictError(
                "another program writes this BMC's login at the same time; stop it: the renewal is tried again"
            )
        self.kept, self._version = kept, found.version

    def hide(self, text: str, factory: KeptLogin) -> str:
        """The text without any password of this BMC."""
        return kept_login.without_secrets(text, *self._seen, *factory.passwords)
