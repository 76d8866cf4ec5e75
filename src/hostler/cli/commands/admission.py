"""`hostler admission`: expected nodes of a file or of NetBox, compared with what is registered, then admitted."""

import os
import re
from dataclasses import dataclass
from typing import Annotated, Any

from cyclopts import App, Group, Parameter

from hostler.cli.command_errors import CommandError, unusable
from hostler.cli.exit_codes import ExitCode
from hostler.cli.expected_files import read_expected_file
from hostler.cli.input_files import read_text, submit
from hostler.cli.list_commands import describe
from hostler.cli.options import CONNECT, SHOW_ONCE, Connect, ShowOnce, Why
from hostler.cli.output import shown
from hostler.client import routes

app = App(name="admission", help="Expected nodes: compare an inventory with what is registered, then admit.")

TOKEN = "HOSTLER_NETBOX_TOKEN"  # noqa: S105 - the name of the variable
_DIGEST = re.compile("[0-9a-f]{64}")
_SOURCE = Group("Inventory", sort_key=10)


@Parameter(name="*", group=_SOURCE)
@dataclass(frozen=True)
class InventorySource:
    """Source of the inventory: a file, or NetBox."""

    file: Annotated[str, Parameter(help="CSV with a header, or YAML with a list under `nodes`.")] = ""
    netbox: Annotated[str, Parameter(help="NetBox's address, instead of a file.")] = ""
    netbox_token_file: Annotated[str, Parameter(help=f"File with NetBox's token; without it, {TOKEN}.")] = ""
    device: Annotated[
        tuple[str, ...], Parameter(negative=(), help="Select devices: `site=hall-1`, `status=planned`. Repeat.")
    ] = ()
    interface: Annotated[
        tuple[str, ...], Parameter(negative=(), help="Select the interfaces they boot from: `tag=boot`. Repeat.")
    ] = ()

    def body(self) -> dict[str, Any]:
        """The inventory as the API takes it. Raises CommandError."""
        from hostler.core.state.input_problems import InvalidInputError

        if bool(self.file) == bool(self.netbox):
            raise unusable("give --file or --netbox, one of them")
        if self.netbox:
            if not (found := self._of_netbox()):
                raise unusable("no device of NetBox matches", "widen --device, or see what the token may read")
            return {"source": "netbox", "nodes": found}
        try:
            nodes = read_expected_file(self.file)
        except InvalidInputError as error:
            raise unusable(str(error)) from error
        if not nodes:
            raise unusable(f"{self.file}: no node is in it", "name each expected one by its serial number and MACs")
        return {"source": "file", "nodes": nodes}

    def _of_netbox(self) -> list[dict[str, Any]]:
        import msgspec

        from hostler.drivers.netbox.client import expected_from
        from hostler.ports import RefusedError, UnreachableError

        token = read_text(self.netbox_token_file).strip() if self.netbox_token_file else os.environ.get(TOKEN, "")
        if not token:
            raise unusable("NetBox asks for a token", f"give --netbox-token-file, or set {TOKEN}")
        try:
            found = expected_from(self.netbox, token, _filters(self.device), _filters(self.interface))
        except RefusedError as error:
            raise unusable(str(error).replace(token, "…")) from error
        except UnreachableError as error:
            raise CommandError(ExitCode.unavailable, str(error).replace(token, "…"), "see that it runs") from error
        return [msgspec.to_builtins(entry) for entry in found]


SOURCE = InventorySource()


def _filters(words: tuple[str, ...]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or not key.isidentifier() or key in ("limit", "offset"):
            raise unusable(f"'{word[:80]}' is not a filter", "write NAME=VALUE, as NetBox's API names it")
        found.setdefault(key, []).append(value)
    return found


@app.command
def plan(*, source: InventorySource = SOURCE, show: ShowOnce = SHOW_ONCE, connect: Connect = CONNECT) -> int:
    """Say what the inventory would add and change, where sources disagree, and the digest to apply it by."""
    found = connect.client().post(routes.ADMISSION_PLAN, source.body())
    if show.output not in ("table", "wide"):
        describe(found, "admission", show.output)
        return 0
    print(shown("\n".join(_told(found)), breaks=True))
    return 0


@app.command
def apply(
    *,
    digest: Annotated[str, Parameter(help="The plan's digest, as `hostler admission plan` shows it.")],
    source: InventorySource = SOURCE,
    why: Why,
    show: ShowOnce = SHOW_ONCE,
    connect: Connect = CONNECT,
) -> int:
    """Carry out the plan of this digest; refused where the fleet, the configuration or the inventory has changed."""
    if not _DIGEST.fullmatch(digest):
        raise unusable(
            f"'{digest[:80]}' is no digest of a plan", "give all 64 digits that `hostler admission plan` shows"
        )
    return submit(connect.client(), routes.ADMISSION, {**source.body(), "digest": digest}, why, show.output)


def _told(found: dict[str, Any]) -> list[str]:
    """The plan in lines."""
    plan = found["plan"]
    lines = [f"add {_named(one)}  ({one['where']})" for one in plan["adds"]]
    for change in plan["changes"]:
        lines += [f"change {change['node']} {_field(one)}  ({change['where']})" for one in change["fields"]]
    for one in plan["conflicts"]:
        lines.append(f"conflict {one['node']} {_field(one['field'])}  ({one['where']}): {one['says']}")
    for one in found["strangers"]:
        stranger = one["stranger"]
        lines.append(f"asks already: {stranger['mac']} from {stranger['address']}  ({one['where']}): {one['says']}")
    counts = f"{len(plan['adds'])} to add, {len(plan['changes'])} to change, {len(plan['conflicts'])} conflicts"
    return [*lines, f"{counts}, {plan['unchanged']} as registered", f"digest {plan['digest']}"]


def _named(one: dict[str, Any]) -> str:
    told = [f"serial {one['serial']} sku {one['sku']} macs {' '.join(one['macs'])}"]
    told += [f"{name} {one[name]}" for name in ("hostname", "site", "row") if one[name]]
    told += [f"rack {one['rack']} u{one['u']}"] if one["rack"] else []
    told += [f"bmc {one['bmc'] or '-'}"]
    return " ".join([*told, *(f"{name} {' '.join(one[name])}" for name in ("outlets", "dpu_bmcs") if one[name])])


def _field(one: dict[str, Any]) -> str:
    return f"{one['field']}: '{one['registered']}' is registered, '{one['expected']}' expected ({one['owner']} decides)"
