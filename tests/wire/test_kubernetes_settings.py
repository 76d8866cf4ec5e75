"""One cluster's file: read whole or refused whole, and how it changes whose work is drained how."""

import pytest

from hostler.core.state.customer_workloads import WorkClass
from hostler.core.state.input_problems import InvalidInputError
from hostler.drivers.kubernetes.external_controllers import ACTORS, OBSERVE, by_manager, remediators
from hostler.drivers.kubernetes.gpu_operator import OPERANDS
from hostler.drivers.kubernetes.settings import KubernetesSettings, parse
from hostler.drivers.kubernetes.workloads import CHECKS, GRACEFUL, INTERRUPTIBLE, class_of, workload
from tests.wire.test_kubernetes_wire import a_pod

GIVEN = """
platform: [kube-system, acme-platform-]
namespaces:
  batch: {drain: evict}
  train-: {evict_after_s: 7200, owner: pat@acme}
  train-big: {owner: kim@acme}
tools:
  - {name: acme-healer, duty: refuse, managers: [acme-healer], marks: [acme.io/heals]}
  - {name: kured, duty: observe, managers: [kured]}
"""


def test_a_namespaces_manner_counts_where_its_pods_say_nothing() -> None:
    """Mutants: the namespace comes before the pod's own word; the shorter of two beginnings counts."""
    spaces = parse("k1.yaml", GIVEN).spaces
    assert class_of(a_pod("batch"), spaces) is WorkClass.graceful
    assert class_of(a_pod("batch", annotations={INTERRUPTIBLE: "false"}), spaces) is WorkClass.uninterruptible
    assert class_of(a_pod("train-a", annotations={GRACEFUL: "true"}), spaces) is WorkClass.graceful
    assert class_of(a_pod("acme-platform-dns"), spaces) is WorkClass.infrastructure
    assert class_of(a_pod("monitoring"), spaces) is WorkClass.uninterruptible, "the given list is the whole list"
    assert class_of(a_pod(CHECKS), spaces) is WorkClass.infrastructure
    told = workload(a_pod("train-a"), (), spaces)
    assert (told.work_class, told.agreed_after_s, told.owner) == (WorkClass.uninterruptible, 7200.0, "pat@acme")
    assert workload(a_pod("train-big"), (), spaces).owner == "kim@acme"
    assert workload(a_pod("train-big"), (), spaces).agreed_after_s is None
    assert workload(a_pod("train-a", annotations={INTERRUPTIBLE: "false"}), (), spaces).agreed_after_s is None


def test_a_clusters_own_tools_come_before_those_that_are_known() -> None:
    actors = parse("k1.yaml", GIVEN).actors
    assert remediators(("acme.io/heals=now",), actors) == ("acme-healer",)
    assert (found := by_manager("kured", actors)) is not None
    assert found.duty == OBSERVE
    assert len(actors) == len(ACTORS) + 1
    assert parse("empty.yaml", "") == KubernetesSettings()


def test_what_goes_for_a_gpu_reset_may_be_told_whole() -> None:
    """Mutant: the usual operands go all the same."""
    given = "operands: [{label: acme.io/watcher}, {label: nvidia.com/gpu.deploy.client, serves: '*'}]"
    found = parse("k1.yaml", given).operands
    assert [(one.label, one.serves) for one in found] == [("acme.io/watcher", ""), (OPERANDS[-1].label, "*")]
    assert parse("k1.yaml", "operands: []").operands == ()


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("namespaces: {a: {drain: kill}}", "drain is 'kill'"),
        ("namespaces: {a: {drain: evict, evict_after_s: 5}}", "at once, and evict_after_s after 5 s"),
        ("namespaces: {a: {evict_after_s: -1}}", "evict_after_s is -1"),
        ("namespaces: {kube-system: {drain: evict}}", "it is the platform's"),
        ("namespaces: {'': {drain: evict}}", "a namespace has no name"),
        ("platform: ['']", "a namespace has no name"),
        ("tools: [{name: x, duty: ignore, marks: [a/]}]", "duty is 'ignore'"),
        ("tools: [{name: x, duty: yield}]", "nothing that it is known by"),
        ("tools: [{name: x, duty: refuse, managers: ['']}]", "an empty sign would match every tool"),
        ("namespace: {}", "unknown field"),
        ("platform: kube-system", "Expected"),
        ("operands: [{label: acme.io/a b}]", "not a label key"),
        ("operands: [acme.io/watcher]", "Expected"),
        ("a: [", "while parsing"),
        ("x" * 70_000, "70000 characters"),
    ],
)
def test_a_file_is_refused_whole_and_says_why(text: str, what: str) -> None:
    """Mutant: what is wrong is left out, and the rest counts."""
    with pytest.raises(InvalidInputError, match=what):
        parse("k1.yaml", text)


def test_every_problem_is_told_at_once() -> None:
    with pytest.raises(InvalidInputError) as told:
        parse("k1.yaml", "namespaces: {a: {drain: kill}, b: {drain: shoot}}")
    assert len(told.value.problems) == 2
