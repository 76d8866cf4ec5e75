"""`hostler domain`: one act on all of a rack or NVLink domain, and how far each of its members has come."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from hostler.cli.intent_requests import IntentRequest, ask
from hostler.cli.list_commands import describe, show_list
from hostler.cli.node_verbs import DrainOptions, More, Timing
from hostler.cli.options import CONNECT, SHOW, SHOW_ONCE, Connect, Show, ShowOnce, Why
from hostler.cli.output import shown
from hostler.cli.status_screen import domain_lines
from hostler.cli.table_columns import DOMAIN_ACTS

if TYPE_CHECKING:
    from hostler.cli.api_client import Client

app = App(name="domain", help="Racks and NVLink domains, taken as one: cordoned, drained and opened together.")

Domain = Annotated[str, Parameter(help="`rack:NAME`, `nvlink:NAME`, a bare NAME of one, or an asset such as a tray.")]


@app.command(name="list", group="Look")
def list_(*, show: Show = SHOW, connect: Connect = CONNECT) -> int:
    """List acts on whole domains that wait or are under way, and whom they wait for."""
    return show_list(connect, DOMAIN_ACTS, show)


@app.command(group="Look")
def get(domain: Domain, *, show: ShowOnce = SHOW_ONCE, connect: Connect = CONNECT) -> int:
    """Show a domain: its nodes, and of every act on it each member's progress and blockers."""
    found = connect.client().get(DOMAIN_ACTS.one(domain))
    if show.output in ("table", "wide"):
        print("\n".join(shown(line) for line in domain_lines(found)))
    else:
        describe(found, found["scope"], show.output)
    return 0


def _scope(client: "Client", domain: str) -> str:
    """The domain's own name, so that nothing is asked of a node that is called like a rack."""
    return str(client.get(DOMAIN_ACTS.one(domain))["scope"])


def _command(verb: str, more: type[More], text: str) -> Callable[..., int]:
    def run(
        domain: Domain,
        *,
        more: More = more(),  # noqa: B008 - frozen
        why: Why,
        show: ShowOnce = SHOW_ONCE,
        connect: Connect = CONNECT,
    ) -> int:
        client = connect.client()
        return ask(client, why, [IntentRequest(verb, _scope(client, domain), more.args())], show.output)

    run.__annotations__["more"] = more
    run.__name__, run.__doc__ = verb.replace("-", "_"), text
    return run


_ACTS = (
    ("drain", DrainOptions, "Cordon all of it, and wait until running work has ended on all of it."),
    ("reset-gpu", Timing, "Drain all of it, reset its GPUs, and open it again."),
    ("reboot", Timing, "Drain all of it, reboot its nodes, and open it again."),
    ("power-cycle", Timing, "Drain all of it, switch its nodes off and on, and open it again."),
    ("return-for-maintenance", Timing, "Drain all of it and take its nodes out of service."),
)
for _verb, _more, _text in _ACTS:
    app.command(_command(_verb, _more, _text), name=_verb, group="Acts on all of it")


@app.command(group="Acts on all of it")
def uncordon(domain: Domain, *, why: Why, show: ShowOnce = SHOW_ONCE, connect: Connect = CONNECT) -> int:
    """Lift the cordons that people placed on its nodes."""
    client = connect.client()
    return ask(client, why, [IntentRequest("uncordon", _scope(client, domain))], show.output)


@app.command(group="Acts on all of it")
def call_off(domain: Domain, *, why: Why, show: ShowOnce = SHOW_ONCE, connect: Connect = CONNECT) -> int:
    """Nobody asks for it any more: what has begun and ended no work is undone on all of it."""
    client = connect.client()
    return ask(client, why, [IntentRequest("call-off", _scope(client, domain))], show.output)
