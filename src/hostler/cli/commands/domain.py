"""`hostler domain`: one act on all of a rack or NVLink domain, and how far each of its members has come."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter

from hostler.cli.intent_requests import IntentRequest
from hostler.cli.list_commands import show_lines, show_list
from hostler.cli.node_verbs import command, word
from hostler.cli.options import CONNECT, SHOW, SHOW_ONCE, Connect, Show, ShowOnce
from hostler.cli.status_screen import domain_lines
from hostler.cli.table_columns import DOMAIN_ACTS
from hostler.core.state.verbs.call_off import CallOff
from hostler.core.state.verbs.every import VERBS
from hostler.core.state.verbs.facts import Verb, name_of
from hostler.core.state.verbs.holds import Uncordon
from hostler.core.state.verbs.remedies import RemedyVerb

if TYPE_CHECKING:
    from hostler.client import Client

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
    show_lines(found, found["scope"], domain_lines(found), show.output)
    return 0


def _scope(client: "Client", domain: str) -> str:
    """The domain's own name, so that nothing is asked of a node that is called like a rack."""
    return str(client.get(DOMAIN_ACTS.one(domain))["scope"])


def _offer(kind: type[Verb], said: str = "") -> None:
    def asking(client: "Client", words: Sequence[str], act: Verb, _: Mapping[str, Any]) -> Sequence[IntentRequest]:
        return [IntentRequest(act, _scope(client, words[0]))]

    made = command(kind, (word("domain", Domain),), asking, said)
    app.command(made, name=name_of(kind), group="Acts on all of it")


for _kind in VERBS.values():
    if issubclass(_kind, RemedyVerb) and _kind.remedy.domain:
        _offer(_kind, _kind.remedy.domain)
_offer(Uncordon, "Lift the cordons that people placed on its nodes.")
_offer(CallOff)
