"""Making nodes known: whole or not at all, and an id is never another node's."""

import msgspec
import pytest
from msgspec.structs import replace

from hostler.controller.inputs import IntentAsked
from hostler.core.state import events as e
from hostler.core.state.assets import Position
from hostler.core.state.intent import Bounds
from hostler.core.state.model import Phase
from tests.kit import Drive, a_node, configuration, intent_of, pool_document

DPU = "https://dpu-a1"
A1 = "https://pdu#/redfish/v1/PowerEquipment/RackPDUs/1/Outlets/A1"
CONFIG = configuration({"train": pool_document(target=0)})


def ask(drive: Drive, *specs: dict[str, object], verb: str = "register") -> str:
    reply = drive.ask(verb, "fleet", nodes=msgspec.json.encode(list(specs)).decode())
    assert reply.granted is (" is " not in reply.text and "'" not in reply.text and "give" not in reply.text), (
        reply.text
    )
    return reply.text


def h100(**fields: object) -> dict[str, object]:
    return {"sku": "h100", **fields}


def test_ids_are_issued_once_and_pass_over_those_that_were_chosen() -> None:
    """Mutant: an issued id overwrites a chosen one."""
    drive = Drive(CONFIG)
    upcoming = [f"c1-n{drive.fleet.cell.seq + n:06d}" for n in range(1, 9)]
    for name in upcoming[::2]:
        ask(drive, h100(id=name))
    ask(drive, *(h100() for _ in range(6)))
    assert len(drive.fleet.nodes) == 10


def test_a_retired_node_s_id_never_comes_back() -> None:
    """Mutant: only living nodes are looked through."""
    drive = Drive(CONFIG, [a_node("c1-n000009", pool="", phase=Phase.rma)])
    assert drive.ask("retire", "c1-n000009").granted
    assert "is or was another node's" in ask(drive, h100(id="c1-n000009"))
    ask(drive, *(h100() for _ in range(12)))
    assert "c1-n000009" not in drive.fleet.nodes
    assert len([r for r in drive.events(e.NodeRegistered) if r.node.id == "c1-n000009"]) == 1


@pytest.mark.parametrize(
    ("specs", "said"),
    [
        ([h100(serial="S1"), h100(serial="S1")], "nodes[1]: serial:S1 is also given in nodes[0]; give it once"),
        ([h100(bmc="https://bmc/a")], "bmc:https://bmc/a is bound to a; retire or rebind a"),
        ([h100(id="a")], "nodes[0]: id 'a' is or was another node's; leave it out"),
        ([h100(id="a b")], "id 'a b'; use letters, digits"),
        ([h100(cell="")], "cell ''; use letters, digits"),
        ([h100(id="x" * 64)], "use letters, digits, '-' and '.', 1 to 63"),
        ([{"sku": "h200"}], "unknown SKU 'h200'; add it to the configuration first"),
        ([h100(outlets=[A1, A1])], "2 outlets, or one twice: give 1 to 16, all that feed the machine; write it so"),
        ([h100(outlets=["https://pdu/outlet/1"])], "outlet 'https://pdu/outlet/1' is not an outlet's address"),
        ([h100(outlets=[A1]), h100(outlets=["https://p#/redfish/v1/B", A1])], f"outlet:{A1} is also given in nodes[0]"),
        ([h100(dpu_bmcs=[DPU, DPU])], "2 BMCs of DPUs, or one twice: give 1 to 16, one for each DPU; write it so"),
        ([h100(dpu_bmcs=["https://u:p@dpu"])], "dpu_bmc 'https://u:p@dpu' is not a BMC's address"),
        ([h100(dpu_bmcs=[DPU]), h100(dpu_bmcs=[DPU])], f"dpu_bmc:{DPU} is also given in nodes[0]; give it once"),
        ([h100(colour="red")], "unknown field `colour`"),
        ([h100(id="nodes")], "id 'nodes' means more than one node"),
        ([h100(tags={"a b": "c"})], "its tags are too many, too long or no names"),
        ([h100(tags={"a": "c" * 129})], "its tags are too many, too long or no names"),
        ([h100(tags={f"t{n}": "" for n in range(17)})], "its tags are too many, too long or no names"),
        ([h100(hostname="gpu\u202e1")], "hostname 'gpu\\u202e1' is not a valid name: 1 to 128 letters"),
        ([h100(serial="SN 1")], "serial 'SN 1' is not a valid name"),
        ([h100(rack="r\u200b1")], "rack 'r\\u200b1' is not a valid name"),
        ([h100(row="-r")], "row '-r' is not a valid name"),
        ([h100(slurm="a;b")], "slurm 'a;b' is not a valid name"),
        ([h100(kubernetes="x" * 129)], "is not a valid name: 1 to 128 letters"),
        ([h100(domains=["nvlink:\x9b2J"])], "domain 'nvlink:\\x9b2J' is not a valid name"),
        ([h100(domains=["leaf:l1", "rail7"])], "'rail7' is no failure domain; write KIND:NAME, such as nvlink:nvl1"),
        ([h100(domains=["pool:train"])], "'pool:train' is no failure domain"),
        ([h100(domains=["fleet"])], "'fleet' is no failure domain"),
        ([h100(domains=["rack:"])], "'rack:' is no failure domain"),
        ([h100(domains=[""])], "'' is no failure domain"),
        ([{}], "missing required field `sku`"),
        ([], "0 nodes; give 1 to 20000"),
    ],
)
def test_one_bad_entry_refuses_them_all_and_says_which(specs: list[dict[str, object]], said: str) -> None:
    """Mutant: the good ones of a bad list are taken."""
    drive = Drive(CONFIG, [a_node("a")])
    text = msgspec.json.encode([*specs[:-1], h100(id="fine"), *specs[-1:]] if specs else []).decode()
    reply = drive.ask("register", "fleet", nodes=text)
    assert not reply.granted
    assert said.replace("nodes[1]", "nodes[2]").replace("nodes[0]: id 'a'", "nodes[1]: id 'a'") in reply.text
    assert list(drive.fleet.nodes) == ["a"]


@pytest.mark.parametrize("text", ["", "{}", "[", "nodes", '[{"sku": 7}]', "\ud800"])
def test_what_is_no_list_of_nodes_is_refused(text: str) -> None:
    drive = Drive(CONFIG)
    assert not drive.ask("register", "fleet", nodes=text).granted


def test_an_adopted_node_names_a_pool_that_exists() -> None:
    drive = Drive(CONFIG)
    reply = drive.ask("adopt", "fleet", nodes='[{"sku":"h100","id":"a","pool":"nowhere"}]')
    assert "unknown pool 'nowhere'" in reply.text
    assert drive.ask("adopt", "fleet", nodes='[{"sku":"h100","id":"a","pool":"train"}]').granted
    assert drive.node("a").phase is Phase.registered
    assert drive.node("a").pool == "train"


def test_an_adopted_node_enters_a_pool_of_its_own_profile_alone() -> None:
    """Mutant: an unmanaged node enters a managed pool, which never takes it back once it has left."""
    drive = Drive(CONFIG)
    reply = drive.ask("adopt", "fleet", nodes='[{"sku":"h100","id":"a","pool":"train","profile":"unmanaged"}]')
    assert not reply.granted
    assert "pool 'train' is managed and the node unmanaged; give profile: managed" in reply.text
    assert list(drive.fleet.nodes) == []


def test_a_name_moves_with_its_binding_and_the_old_one_ends() -> None:
    drive = Drive(CONFIG, [a_node("a"), a_node("b")])
    assert not drive.ask_two("rebind", "a", kind="bmc", value="https://bmc/b").granted
    assert drive.ask_two("rebind", "a", kind="bmc", value="https://bmc/new").granted
    kinds = [(b.value, b.until is None) for b in drive.node("a").bindings if b.kind == "bmc"]
    assert kinds == [("https://bmc/a", False), ("https://bmc/new", True)]
    assert drive.fleet.resolve("S-a") == drive.node("a")
    assert drive.fleet.index.members("bmc:https://bmc/a") == []
    assert drive.ask_two("rebind", "b", kind="bmc", value="https://bmc/a").granted


def test_an_outlet_feeds_one_node_and_only_the_whole_cell_s_operators_say_which() -> None:
    """Mutants: one of several is free to be another's; the earlier ones stay; a narrowed operator names a PDU."""
    drive = Drive(CONFIG, [a_node("a"), a_node("b")])
    both = f"{A1} {A1[:-2]}B1"
    assert drive.ask_two("rebind", "a", kind="outlet", value=both).granted
    taken = drive.ask("rebind", "b", kind="outlet", value=f"{A1[:-2]}C1 {A1}")
    assert (taken.granted, taken.text) == (False, f"outlet {A1} is bound to a: rebind or retire that one first")
    assert "is not an outlet's address" in drive.ask("rebind", "b", kind="outlet", value="https://pdu/1").text
    assert drive.ask_two("rebind", "a", kind="outlet", value=f"{A1[:-2]}B1").granted
    assert drive.ask_two("rebind", "b", kind="outlet", value=A1).granted
    away = {"kind": "outlet", "value": A1.replace("pdu", "attacker.test")}
    narrowed = intent_of("i9", "rebind", "a", "eve", "new PDU", drive.now, away, bounds=Bounds(site="s1"))
    assert not drive.step(IntentAsked(909, narrowed)).replies[0].granted
    alone = drive.ask("rebind", "a", **away)
    assert (alone.granted, "password will be sent" in alone.text) == (False, True)


def test_a_dpu_s_bmc_is_one_node_s_and_only_the_whole_cell_s_operators_say_where_it_is() -> None:
    """Mutants: one of several is free to be another's; one person sends a password to a new address."""
    drive = Drive(CONFIG, [a_node("a"), a_node("b")])
    ask(drive, h100(id="c", dpu_bmcs=["https://dpu-c1", "https://dpu-c2"]))
    assert drive.node("c").binding("dpu_bmc") == "https://dpu-c1 https://dpu-c2"
    taken = drive.ask("rebind", "b", kind="dpu_bmc", value="https://dpu-b1,https://dpu-c2")
    assert (taken.granted, taken.text) == (
        False,
        "dpu_bmc https://dpu-c2 is bound to c: rebind or retire that one first",
    )
    assert "is not a BMC's address" in drive.ask("rebind", "b", kind="dpu_bmc", value="dpu-b1").text
    alone = drive.ask("rebind", "a", kind="dpu_bmc", value=DPU)
    assert (alone.granted, "a DPU's password will be sent to its new address" in alone.text) == (False, True)
    there = {"kind": "dpu_bmc", "value": DPU}
    narrowed = intent_of("i9", "rebind", "a", "eve", "new DPU", drive.now, there, bounds=Bounds(site="s1"))
    assert not drive.step(IntentAsked(909, narrowed)).replies[0].granted


def test_a_node_keeps_its_tags() -> None:
    drive = Drive(CONFIG, [])
    ask(drive, h100(id="a", tags={"team": "vision", "lab": ""}))
    assert drive.node("a").tags == (("lab", ""), ("team", "vision"))


def test_a_sku_names_the_system_of_a_bmc_that_shows_several() -> None:
    """Mutants: a name that is given is overridden; two nodes on one address are taken for two machines."""
    skus = {name: replace(sku, bmc_system="System_0") for name, sku in CONFIG.skus.items()}
    drive = Drive(replace(CONFIG, skus=skus), [])
    ask(drive, h100(id="a", bmc="https://b1"), h100(id="b", bmc="https://b2#Other"), h100(id="c"))
    assert [drive.node(name).binding("bmc") for name in "abc"] == ["https://b1#System_0", "https://b2#Other", ""]
    again = drive.ask("register", "fleet", nodes=msgspec.json.encode([h100(id="d", bmc="https://b1")]).decode())
    assert "bmc:https://b1#System_0 is bound to a; retire or rebind a" in again.text


def test_a_narrowed_operator_never_says_where_a_bmc_s_password_is_sent_and_nobody_alone() -> None:
    """Mutants: bounds are not asked; one person is enough; a host's name needs two."""
    drive = Drive(CONFIG, [a_node("a", position=Position("c1", "s1"))])
    away = {"kind": "bmc", "value": "http://attacker.test"}
    for number, bounds in enumerate((Bounds(site="s1"), Bounds(pool="train"))):
        narrowed = intent_of(f"i{number}", "rebind", "a", "eve", "new board", drive.now, away, bounds=bounds)
        reply = drive.step(IntentAsked(901 + number, narrowed)).replies[0]
        assert (reply.granted, "operator of the whole cell" in reply.text) == (False, True)
    alone = drive.ask("rebind", "a", **away)
    assert (alone.granted, "password will be sent" in alone.text) == (False, True)
    assert not drive.events(e.BindingChanged)
    assert not drive.ask("approve-request", alone.detail["approval"]).granted
    assert drive.ask("rebind", "a", kind="hostname", value="gpu-7").granted
    assert "not a valid name" in drive.ask("rebind", "a", kind="hostname", value="gpu\u202e7").text
    assert drive.ask("approve-request", alone.detail["approval"], person="bob").granted
