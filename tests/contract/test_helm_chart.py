"""The Helm chart: Helm renders it, a real API server takes every object of it, and what it starts is what we ship."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml

from hostler.agent import main as agent
from hostler.cli.main import build
from hostler.drivers.kubernetes.kube_api import APPLY, NOT_FOUND
from hostler.drivers.kubernetes.settings import parse
from tests.contract.kubernetes_world import CHECKING, PATIENCE_S, RIGHTS, Admin, an_admin, let_go, until_asked
from tests.controlplane.building import NoControlPlaneError, definitions
from tests.controlplane.chart import CASES, CHART, OTHERS, helm, one, rendered
from tests.controlplane.plane import ControlPlane
from tests.end_to_end.processes import answers, free_port, process, run

pytestmark = pytest.mark.xdist_group("kubernetes")
SINGLE, HA, EVERYTHING = (str(CHART / "ci" / f"{name}.yaml") for name in ("single", "ha", "everything"))
SPACE = "hostler"
PLACES = {
    "Namespace": "/api/v1/namespaces",
    "ServiceAccount": "/api/v1/namespaces/{}/serviceaccounts",
    "Service": "/api/v1/namespaces/{}/services",
    "ConfigMap": "/api/v1/namespaces/{}/configmaps",
    "StatefulSet": "/apis/apps/v1/namespaces/{}/statefulsets",
    "DaemonSet": "/apis/apps/v1/namespaces/{}/daemonsets",
    "PodDisruptionBudget": "/apis/policy/v1/namespaces/{}/poddisruptionbudgets",
    "NetworkPolicy": "/apis/networking.k8s.io/v1/namespaces/{}/networkpolicies",
    "Role": "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/roles",
    "RoleBinding": "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/rolebindings",
    "Ingress": "/apis/networking.k8s.io/v1/namespaces/{}/ingresses",
    "HTTPRoute": "/apis/gateway.networking.k8s.io/v1/namespaces/{}/httproutes",
    "BackendTLSPolicy": "/apis/gateway.networking.k8s.io/v1/namespaces/{}/backendtlspolicies",
    "ServiceMonitor": "/apis/monitoring.coreos.com/v1/namespaces/{}/servicemonitors",
    "PodMonitor": "/apis/monitoring.coreos.com/v1/namespaces/{}/podmonitors",
    "PrometheusRule": "/apis/monitoring.coreos.com/v1/namespaces/{}/prometheusrules",
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "PriorityClass": "/apis/scheduling.k8s.io/v1/priorityclasses",
}
SWITCHES = ("podMonitor", "serviceMonitor", "prometheusRule", "gateway")
"""Values that ask for objects of kinds that a cluster may not have."""
DRY = {"dryRun": "All", "fieldManager": "helm", "fieldValidation": "Strict"}


@pytest.fixture
async def admin(control_plane: ControlPlane) -> AsyncIterator[Admin]:
    async with an_admin(control_plane) as admin:
        await admin.space(SPACE)
        await admin.space("hostler-checks")
        yield admin
    let_go()


@pytest.mark.parametrize("values", CASES, ids=lambda path: path.stem)
async def test_a_real_api_server_takes_every_object(admin: Admin, values: Path) -> None:
    """Strictly: a field that no such object has is refused. Mutant: a misspelt field of any template."""
    code, said, errors = helm("lint", "--strict", str(CHART), "--values", str(values))
    assert code == 0, said + errors
    objects = rendered("--values", str(values))
    kinds = {each["kind"] for each in objects}
    asked = [d for d in _others_kinds() if d["spec"]["names"]["kind"] in kinds]
    place = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    for definition in asked:
        await admin.ask("POST", place, definition)
    try:
        for each in objects:
            await _is_taken(admin, each)
    finally:
        for definition in asked:
            at = f"{place}/{definition['metadata']['name']}"
            await admin.delete(at)
            await until_asked(partial(_is_gone, admin, at), "the definition to be gone")


@cache
def _others_kinds() -> list[dict[str, Any]]:
    """The definitions that the Prometheus Operator and the Gateway API ship."""
    try:
        text = definitions().read_text()
    except NoControlPlaneError as missing:
        pytest.skip(str(missing))
    return [document for document in yaml.load_all(text, yaml.CSafeLoader) if document]


async def _is_gone(admin: Admin, path: str) -> bool:
    return (await admin.api.get(path)).status == NOT_FOUND


async def _is_taken(admin: Admin, each: dict[str, Any]) -> None:
    meta = each["metadata"]
    path = f"{PLACES[each['kind']].format(meta.get('namespace', ''))}/{meta['name']}"
    async with asyncio.timeout(PATIENCE_S):
        while (answer := await admin.api.change("PATCH", path, each, APPLY, DRY)).status == NOT_FOUND:  # noqa: ASYNC110
            await asyncio.sleep(0.1)  # what was defined just now is served a moment later
    assert answer.status in (200, 201), f"{path}: {answer.status} {answer.body[:800]!r}"


async def test_controllers_stand_the_strictest_pod_security_and_agents_do_not(admin: Admin) -> None:
    """Mutant: any of the security settings is left out of the controller's pod, or of its init container."""
    label = {"pod-security.kubernetes.io/enforce": "restricted"}
    await admin.api.change("POST", "/api/v1/namespaces", {"metadata": {"name": "closed", "labels": label}})
    objects = rendered("--values", EVERYTHING)
    found = {
        kind: await admin.api.change(
            "POST",
            "/api/v1/namespaces/closed/pods",
            {"metadata": {"name": "p"}, "spec": _without_class(one(objects, kind)["spec"]["template"]["spec"])},
            query={"dryRun": "All"},
        )
        for kind in ("StatefulSet", "DaemonSet")
    }
    assert found["StatefulSet"].status == 201, found["StatefulSet"].body
    pod = one(objects, "StatefulSet")["spec"]["template"]["spec"]
    assert all(c["securityContext"]["readOnlyRootFilesystem"] for c in (*pod["containers"], *pod["initContainers"]))
    assert found["DaemonSet"].status == 403
    assert b"privileged" in found["DaemonSet"].body


def _without_class(spec: dict[str, Any]) -> dict[str, Any]:
    """The pod without what only the installed release has."""
    return {key: value for key, value in spec.items() if key != "priorityClassName"}


def test_its_rights_are_those_of_the_manifest_that_the_driver_is_tried_with() -> None:
    """Mutant: a right or a subject that the template adds, loses or renames."""
    with_joining = rendered("--values", SINGLE, "--show-only", "templates/rbac.yaml")
    plain = [d for d in yaml.safe_load_all(RIGHTS.read_text()) if d["kind"] != "Namespace"]
    for each in with_joining:
        del each["metadata"]["labels"]
    assert _sorted(with_joining) == _sorted(plain)
    without = rendered("--values", SINGLE, "--set", "rbac.joining=false", "--show-only", "templates/rbac.yaml")
    assert {o["metadata"]["name"] for o in without} == {"hostler-controller"}


def test_a_release_of_another_name_has_its_own_account_and_rights() -> None:
    code, said, errors = helm("template", "b", str(CHART), "-n", "two", "-f", SINGLE, "-s", "templates/rbac.yaml")
    assert code == 0, errors
    found = [document for document in yaml.safe_load_all(said) if document]
    assert {o["metadata"]["name"].partition("-")[0] for o in found} == {"b"}
    accounts = [s for o in found for s in o.get("subjects", ()) if s["kind"] == "ServiceAccount"]
    assert accounts
    assert {(s["name"], s["namespace"]) for s in accounts} == {("b-controller", "two")}


def _sorted(objects: list[dict[str, Any]]) -> list[str]:
    return sorted(json.dumps(each, sort_keys=True) for each in objects)


@pytest.mark.parametrize(
    ("given", "where"),
    [
        ("image.tag=", "'/image/tag'"),
        ("controller.replicas=0", "'/controller/replicas'"),
        ("controller.replicas=2", "'/controller/journal/type': value must be 'postgresql'"),
        ("controller.journal.type=postgresql", "'/controller/journal/existingSecret'"),
        ("controller.tls.existingSecret=", "'/controller/tls/existingSecret'"),
        ("controller.leaseSeconds=0", "'/controller/leaseSeconds'"),
        ("controller.lease=5", "'/controller': additional properties 'lease' not allowed"),
        ("controller.clusters[0].name=x", "'/controller/clusters/0': missing property 'existingSecret'"),
        ("controller.resources.limits.memory=much", "'/controller/resources/limits/memory'"),
        ("controller.enabled=false", "'/agent/server'"),
        ("agent.units[0]=kubelet", "'/agent/units/0'"),
        ("podMonitor.enabled=true", "'/podMonitor/tokenSecret/name'"),
        ("networkPolicy.from[0].cidr=10.0.0.0/8", "'/networkPolicy/from/0'"),
        ("ingress.enabled=true", "'/ingress/hosts': minItems"),
        ("ingress.hosts[0]=*.example", "'/ingress/hosts/0'"),
        ("ingress.hosts[0]=https://a.example", "'/ingress/hosts/0'"),
        ("ingress.host=a.example", "'/ingress': additional properties 'host' not allowed"),
        ("ingress.tls[0].hosts[0]=a.example", "'/ingress/tls/0': missing property 'secretName'"),
        ("gateway.enabled=true", "'/gateway/parentRefs': minItems"),
        ("gateway.parentRefs[0].namespace=a", "'/gateway/parentRefs/0': missing property 'name'"),
        ("controller.hostNames[0]=https://a", "'/controller/hostNames/0'"),
        ("controller.extraEnv[0].name=POD_IP", "'/controller/extraEnv/0/name'"),
        ("controller.extraEnv[0].name=A", "'/controller/extraEnv/0': missing property 'valueFrom'"),
        ("controller.extraEnvFrom[0].prefix=A", "'/controller/extraEnvFrom/0': missing property 'configMapRef'"),
        ("controller.extraVolumes[0].name=data", "'/controller/extraVolumes/0'"),
        ("controller.extraVolumeMounts[0].name=extra-a", "missing property 'mountPath'"),
        (r"controller.podLabels.app\.kubernetes\.io/name=x", "invalid propertyName 'app.kubernetes.io/name'"),
        ("controller.podAnnotations.a=true", "'/controller/podAnnotations/a': got boolean, want string"),
        ("agent.affinity.node=x", "'/agent/affinity': additional properties 'node' not allowed"),
        ("serviceMonitor.enabled=true", "'/serviceMonitor/tokenSecret/name'"),
    ],
)
def test_wrong_values_are_refused_and_named(given: str, where: str) -> None:
    """With another wrong value beside it: what is refused is refused whole, with all that is wrong."""
    code, said, errors = helm("template", "hostler", str(CHART), "--values", SINGLE, "--set", f"{given},extra=1")
    assert (code, said) == (1, "")
    assert where in errors
    assert "additional properties 'extra' not allowed" in errors


@pytest.mark.parametrize(
    ("values", "asked", "kind"),
    [
        (EVERYTHING, "podMonitor", "PodMonitor"),
        (HA, "serviceMonitor", "ServiceMonitor"),
        (EVERYTHING, "prometheusRule", "PrometheusRule"),
        (EVERYTHING, "gateway", "HTTPRoute"),
    ],
)
def test_what_the_cluster_has_no_kind_for_is_not_left_out_silently(values: str, asked: str, kind: str) -> None:
    switched = (f"{name}.enabled={str(name == asked).lower()}" for name in SWITCHES)
    code, _, errors = helm("template", "hostler", str(CHART), "--values", values, "--set", ",".join(switched))
    assert code == 1
    assert f"this cluster has no {kind}" in errors


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("serviceMonitor.enabled=true,serviceMonitor.tokenSecret.name=a", "every controller would be scraped twice"),
        ("controller.tls.existingSecret=,controller.tls.insecurePlainHttp=true", "the controllers speak no TLS"),
    ],
)
def test_values_that_contradict_each_other_are_refused(given: str, said: str) -> None:
    known = [word for kind in OTHERS for word in ("--api-versions", kind)]
    code, _, errors = helm("template", "hostler", str(CHART), "--values", EVERYTHING, "--set", given, *known)
    assert code == 1
    assert said in errors


def test_a_service_monitor_finds_one_service_and_those_who_stand_by() -> None:
    """Mutant: it selects both services, and every controller is scraped twice."""
    objects = rendered("--values", HA)
    wanted = one(objects, "ServiceMonitor")["spec"]["selector"]["matchLabels"].items()
    (found,) = [o for o in objects if o["kind"] == "Service" and wanted <= o["metadata"]["labels"].items()]
    assert found["spec"]["publishNotReadyAddresses"]


def test_rules_and_dashboard_are_the_files_as_they_stand() -> None:
    """Mutant: a template that escapes or drops a line of them."""
    objects = rendered("--values", EVERYTHING)
    files = CHART / "files"
    assert one(objects, "PrometheusRule")["spec"] == yaml.safe_load((files / "alerts.yaml").read_text())
    shown = one(objects, "ConfigMap", "hostler-dashboard")
    assert json.loads(shown["data"]["hostler.json"]) == json.loads((files / "dashboard.json").read_text())
    assert shown["metadata"]["labels"]["grafana_dashboard"] == "1"


def test_nothing_secret_is_rendered_and_several_controllers_have_a_budget() -> None:
    for values in CASES:
        assert not [o for o in rendered("--values", str(values)) if o["kind"] == "Secret"]
    assert one(rendered("--values", HA), "PodDisruptionBudget")["spec"]["maxUnavailable"] == 1
    assert not [o for o in rendered("--values", SINGLE) if o["kind"] == "PodDisruptionBudget"]


@pytest.mark.parametrize(("values", "folder"), [(SINGLE, "/var/lib/hostler"), (HA, ""), (EVERYTHING, "/archive")])
def test_what_leaves_the_journal_goes_where_it_outlives_the_pod(values: str, folder: str) -> None:
    """Mutants: the archive of a database lies on a volume that goes with its pod; a journal in a file only grows."""
    pod = one(rendered("--values", values), "StatefulSet")["spec"]
    (container,) = pod["template"]["spec"]["containers"]
    given = [word.partition("=")[2] for word in container["args"] if word.startswith("--archive=")]
    assert bool(given) is bool(folder)
    mounts = {mount["mountPath"]: mount["name"] for mount in container["volumeMounts"]}
    gone = {volume["name"] for volume in pod["template"]["spec"].get("volumes", []) if "emptyDir" in volume}
    for path in given:
        assert next(name for mount, name in mounts.items() if Path(path).is_relative_to(mount)) not in gone


def test_checks_stand_below_everything_that_says_nothing() -> None:
    """Mutant: a check that may push others away, or that nobody preempts."""
    check = one(rendered("--values", SINGLE), "PriorityClass", "hostler-check")
    assert check["value"] < 0
    assert check["preemptionPolicy"] == "Never"
    del check["metadata"]["labels"]
    assert check == yaml.safe_load(CHECKING.read_text())


def test_the_agent_takes_the_arguments_of_the_daemonset() -> None:
    """Mutant: an option is renamed."""
    pod = one(rendered("--values", EVERYTHING), "DaemonSet")["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert container["command"] == ["python", "-m", agent.__name__]
    settings = agent.settings_from(container["args"])
    assert settings
    assert (settings.allow_actions, settings.units) == (True, ("kubelet.service", "mine@1.service"))
    mounted = {mount["mountPath"] for mount in container["volumeMounts"]}
    assert {str(settings.state_dir), str(settings.token_file)} <= mounted
    assert {mount["name"] for mount in container["volumeMounts"]} == {volume["name"] for volume in pod["volumes"]}
    assert not any("secret" in volume for volume in pod["volumes"])
    careful = one(rendered("--values", SINGLE), "DaemonSet")["spec"]["template"]["spec"]["containers"][0]
    assert "--allow-actions" not in careful["args"]


def test_serve_takes_every_argument_and_reads_every_document_that_the_chart_gives_it() -> None:
    """Mutants: an option is renamed; a field of a cluster's settings is."""
    objects = rendered("--values", EVERYTHING)
    (container,) = one(objects, "StatefulSet")["spec"]["template"]["spec"]["containers"]
    command, given, *_ = build().parse_args(container["args"], exit_on_error=False, print_error=False)
    assert command.__name__ == "serve"
    clusters = given.arguments["clusters"].cluster
    assert [each.partition("=")[0] for each in clusters] == ["train", "serve", "lab"]
    (document,) = one(objects, "ConfigMap", "hostler-settings")["data"].items()
    assert clusters[0].endswith(f"+/etc/hostler/settings/{document[0]}")
    assert parse(*document).actors[0].name == "our own repairs"


async def test_what_the_controllers_pod_runs_starts_and_answers_its_probes(tmp_path: Path) -> None:
    """Commands of the pod, its folders elsewhere, without a cluster. Mutant: a flag that serve does not have."""
    values = "controller.tls.existingSecret=,controller.tls.insecurePlainHttp=true,gateway.backendCaConfigMap="
    plain = ("--set", values)
    port = free_port()
    alone = ("--set", f"controller.replicas=1,controller.journal.type=sqlite,controller.service.port={port}")
    far = ("--set", "controller.clusters=null,controller.slurm=null,controller.settings=null,controller.inCluster=")
    objects = rendered("--values", EVERYTHING, *plain, *alone, *far)
    pod = one(objects, "StatefulSet")["spec"]["template"]["spec"]
    (container,), (access,) = pod["containers"], pod["initContainers"]
    (tmp_path / "access/bmc").mkdir(parents=True)
    entry = {"username": "u", "password": "p", "ca": "system"}
    (tmp_path / "access/bmc/bmc.json").write_text(json.dumps({"https://10.20.0.0/16": entry}))
    (tmp_path / "access/bmc/bmc.json").chmod(0o440)
    (tmp_path / "config").mkdir()
    for name, text in one(objects, "ConfigMap", "hostler-config")["data"].items():
        (tmp_path / "config" / name).write_text(text)
    policy = Path(agent.__file__).parents[1] / "core/policy/default_policy.yaml"
    with (tmp_path / "config/pools.yaml").open("a") as pools:
        pools.write(policy.read_text())
    (tmp_path / "data").mkdir()

    def here(word: str) -> str:
        """The word, with the pod's folders and name as they are here."""
        for there, ours in (("/var/lib/hostler", "data"), ("/etc/hostler/config", "config"), ("/access", "access")):
            word = word.replace(there, str(tmp_path / ours))
        return word.replace("$(POD_NAME)", "hostler-controller-0").replace("$(POD_IP)", "10.9.8.7")

    assert container["command"][0] == "python"

    code, said = await run(*map(here, access["command"]))
    assert code == 0, said
    command = [sys.executable, *(here(word) for word in (*container["command"][1:], *container["args"]))]
    log = tmp_path / "log"
    async with aiohttp.ClientSession() as session, process(*command, log=log) as controller:
        for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
            asked = container[probe]["httpGet"]
            url = f"{asked['scheme'].lower()}://127.0.0.1:{port}{asked['path']}"
            try:
                await answers(session, url, PATIENCE_S)
            except TimeoutError:
                raise AssertionError(f"{url} does not answer: {controller.returncode} {log.read_text()}") from None
        await _is_called_by_its_names_alone(session, f"http://127.0.0.1:{port}/healthz")


async def _is_called_by_its_names_alone(session: aiohttp.ClientSession, url: str) -> None:
    """By hosts of Ingress and Gateway, of a load balancer, by probes and by the other controllers."""
    inside = ("10.9.8.7", "hostler.hostler.svc", "hostler-controller-0.hostler-peers.hostler.svc")
    for name in (*inside, "hostler.example", "FLEET.example:443", "hostler.gw.example", "lb.example", "a.example"):
        async with session.get(url, headers={"Host": name}) as answer:
            assert answer.status == 200, name
    async with session.get(url, headers={"Host": "rebound.example"}) as answer:
        assert (answer.status, "--host-name" in (await answer.json())["instead"]) == (421, True)


def test_without_a_name_from_outside_no_name_is_checked() -> None:
    """Mutant: the service's own names alone are given, and a port-forward is refused."""
    (container,) = one(rendered("--values", SINGLE), "StatefulSet")["spec"]["template"]["spec"]["containers"]
    assert not [word for word in container["args"] if word.startswith("--host-name")]
