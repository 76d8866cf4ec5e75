"""`hostler sku`: a SKU made of a golden node, and where a node differs from its SKU."""

from cyclopts import App

from hostler.cli.list_commands import describe, show_unpaged
from hostler.cli.options import CONNECT, SHOW_LIST, SHOW_ONCE, Connect, NodeName, ShowList, ShowOnce
from hostler.cli.output import shown
from hostler.cli.table_columns import NODES, SKU_DIFFERENCES

app = App(name="sku", help="SKUs: made of a golden node, and compared with one.")


@app.command(name="from-node")
def from_node(node: NodeName, *, show: ShowOnce = SHOW_ONCE, connect: Connect = CONNECT) -> int:
    """Write down the SKU that a golden node shows, as a document for the configuration; notes are its comments.

    Read it before it is used: `hostler policy check`, then `hostler policy activate`.
    """
    found = connect.client().get(NODES.one(node, "/sku-draft"))
    if show.output not in ("table", "wide"):
        describe(found, node, show.output)
        return 0
    import yaml

    for note in found["notes"]:
        print(shown(f"# {note}"))
    text = yaml.safe_dump({"skus": {found["name"]: found["sku"]}}, sort_keys=False, allow_unicode=True, width=120)
    print(shown(text, breaks=True), end="")
    return 0


@app.command
def diff(node: NodeName, *, show: ShowList = SHOW_LIST, connect: Connect = CONNECT) -> int:
    """Show where a node is not as its SKU says: slot, expected, found, what to do; and the aspects in which it is."""
    return show_unpaged(connect, SKU_DIFFERENCES, show, NODES.one(node, "/sku-differences"))
