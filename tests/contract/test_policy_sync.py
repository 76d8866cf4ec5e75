"""`hostler policy sync`: documents of a real Git checkout, planned and activated by a real server."""

import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hostler.cli.exit_codes import ExitCode
from hostler.server.tokens import Grant, Role
from tests.contract.api_world import DOCUMENTS, FLEET, House, house
from tests.end_to_end.processes import HOSTLER, run


class Checkout:
    """A clone with the documents in `site/`, and the command run on it."""

    def __init__(self, folder: Path, world: House, token: Path) -> None:
        self.folder = folder
        self.world = world
        self.token = token
        self.site = folder / "site"

    def git(self, *words: str) -> str:
        named = ("-c", "user.name=ann", "-c", "user.email=ann@example.org", "-c", "commit.gpgsign=false")
        argv = ("git", "-C", str(self.folder), *named, *words)
        return subprocess.run(argv, check=True, capture_output=True, text=True).stdout.strip()

    def commit(self, **documents: str) -> str:
        for name, text in documents.items():
            (self.site / f"{name}.yaml").write_text(text)
        self.git("add", "-A")
        self.git("commit", "-qm", "change")
        return self.git("rev-parse", "HEAD")

    async def sync(self, *words: str, path: str = "") -> tuple[int, str]:
        to = ("--server", self.world.url, "--token-file", str(self.token), "--reason", "as in Git")
        return await run(HOSTLER, "policy", "sync", path or str(self.site), *words, *to)

    async def active(self) -> dict[str, str] | None:
        found = (await self.world.operator.get("/v1/config"))["source"]
        return dict(found) if found else None


@pytest.fixture
async def checkout(tmp_path: Path) -> AsyncIterator[Checkout]:
    folder, token = tmp_path / "checkout", tmp_path / "token"
    (folder / "site").mkdir(parents=True)
    async with house(tmp_path) as world:
        token.write_text(world.operator.token)
        token.chmod(0o600)
        found = Checkout(folder, world, token)
        found.git("init", "-q", "-b", "main")
        found.git("remote", "add", "origin", "https://ann:s3cret@git.example.org/gpu/policy.git?x=1")
        for name, text in DOCUMENTS.items():
            (found.site / name).write_text(text)
        (found.site / "README.md").write_text("no document\n")
        yield found


def intents(world: House) -> int:
    """The number of intents that were recorded."""
    return sum("IntentRecorded" in str(record.event) for record in world.cell.journal.records())


FOUR = FLEET.replace("target: 3", "target: 4", 1)


async def test_a_commit_is_planned_activated_recorded_and_then_nothing_is_to_do(checkout: Checkout) -> None:
    """Mutants: the plan activates; the login goes along; the second run activates again; history names no commit."""
    commit = checkout.commit(fleet=FOUR)
    before = checkout.world.cell.view.configuration.sha256
    code, said = await checkout.sync()
    assert code == ExitCode.ok, said
    assert "pools.alpha.target: 3 → 4" in said
    assert "nothing is activated; add --yes" in said
    assert checkout.world.cell.view.configuration.sha256 == before
    code, said = await checkout.sync("--yes")
    assert code == ExitCode.ok, said
    origin = "https://git.example.org/gpu/policy.git"
    assert await checkout.active() == {"commit": commit, "ref": "main", "origin": origin}
    told = [str(r.event) for r in checkout.world.cell.journal.records()]
    assert not [one for one in told if "s3cret" in one]
    assert any("ConfigActivated" in one and commit in one for one in told)
    asked = intents(checkout.world)
    code, said = await checkout.sync("--yes")
    assert (code, "active already; nothing to do" in said) == (ExitCode.ok, True), said
    assert intents(checkout.world) == asked
    token = ("--server", checkout.world.url, "--token-file", str(checkout.token))
    code, said = await run(HOSTLER, "policy", "show", *token)
    assert (code, commit in said) == (0, True), said


async def test_a_problem_is_said_by_file_and_line_and_nothing_is_activated(checkout: Checkout) -> None:
    """Mutant: documents that are sound are activated without the one that is not."""
    checkout.commit(fleet=FLEET.replace("sku: h100, target", "sku: nope, target", 1))
    code, said = await checkout.sync("--yes")
    assert (code, "fleet.yaml:5" in said) == (ExitCode.usage, True), said
    assert await checkout.active() is None


async def test_what_is_not_committed_is_refused_unless_a_commit_is_named(checkout: Checkout) -> None:
    """Mutants: the work tree is read instead of the commit; a new file is overlooked."""
    first = checkout.commit()
    (checkout.site / "fleet.yaml").write_text(FOUR)
    (checkout.site / "more.yaml").write_text("pools: {}\n")
    code, said = await checkout.sync("--yes")
    assert code == ExitCode.refused, said
    assert "uncommitted changes: site/fleet.yaml, site/more.yaml" in said
    code, said = await checkout.sync("--ref", "main")
    assert (code, "active already" in said) == (ExitCode.ok, True), said
    code, said = await checkout.sync("--ref", first)
    assert (code, "active already" in said) == (ExitCode.ok, True), said


async def test_an_older_commit_is_refused_unless_it_is_asked_for(checkout: Checkout) -> None:
    """Mutants: the comparison is the other way round; a commit that is unknown here counts as older."""
    first = checkout.commit()
    second = checkout.commit(fleet=FOUR)
    assert (await checkout.sync("--yes"))[0] == ExitCode.ok
    code, said = await checkout.sync("--yes", "--ref", first)
    assert code == ExitCode.refused, said
    assert f"commit {first[:12]} does not come after {second[:12]}, which is active" in said
    code, said = await checkout.sync("--yes", "--ref", first, "--allow-older")
    assert code == ExitCode.ok, said
    assert (await checkout.active() or {})["commit"] == first
    checkout.git("checkout", "-q", "--orphan", "anew")
    checkout.commit(fleet=FOUR)
    code, said = await checkout.sync("--yes")
    assert (code, "does not come after" in said) == (ExitCode.refused, True), said


async def test_what_is_no_document_of_a_checkout_is_refused(checkout: Checkout, tmp_path: Path) -> None:
    """Mutants: a link is followed out of the tree; a word of the caller's is taken for an option of Git's."""
    (tmp_path / "outside.yaml").write_text(FOUR)
    (checkout.site / "link.yaml").symlink_to(tmp_path / "outside.yaml")
    checkout.commit()
    cases = {
        (str(tmp_path / "outside.yaml"),): "is in no Git work tree",
        (str(checkout.site / "none.yaml"),): "none.yaml is not at commit",
        (str(checkout.site / "link.yaml"),): "site/link.yaml is a symbolic link at commit",
        (str(checkout.site),): "site/link.yaml is a symbolic link at commit",
        (str(checkout.site / "fleet.yaml"), "--ref", "nowhere"): "nowhere is no commit of",
        (str(checkout.site / "fleet.yaml"), "--ref=--output=/tmp/x"): "--output=/tmp/x is no commit of",
    }
    for (path, *words), expected in cases.items():
        code, said = await checkout.sync("--yes", *words, path=path)
        assert (code, expected in " ".join(said.split())) == (ExitCode.usage, True), said
    assert await checkout.active() is None


async def test_a_second_person_approves_the_commit_and_a_stopped_rollout_is_not_begun_again(checkout: Checkout) -> None:
    """Mutants: the approval loses the commit; a timer begins a rollout over and over that a person has stopped."""
    world = checkout.world
    await world.adopt(4)
    narrow = DOCUMENTS["policy.yaml"].replace("reach: {nodes: 8,", "reach: {nodes: 1,")
    body = {"documents": {**DOCUMENTS, "policy.yaml": narrow}, "reason": "narrow"}
    assert (await world.operator.post("/v1/config", body))[0] == 200
    commit = checkout.commit(policy=narrow.replace("remedy: gpu_reset", "remedy: reboot", 1))
    code, said = await checkout.sync("--yes")
    assert (code, "slices, each watched" in said) == (ExitCode.ok, True), said
    rollout = world.cell.view.rollout
    assert rollout is not None
    assert rollout.configuration is not None
    assert rollout.configuration.source is not None
    assert rollout.configuration.source.commit == commit
    code, said = await checkout.sync("--yes")
    assert (code, f"rollout {rollout.id} is bringing it" in said) == (ExitCode.ok, True), said
    stop = {"act": {"verb": "stop-rollout"}, "target": rollout.id, "reason": "not today"}
    assert (await world.operator.post("/v1/intents", stop))[0] == 200
    code, said = await checkout.sync("--yes")
    assert (code, "was stopped: stopped by a person: not today" in said) == (ExitCode.refused, True), said
    code, said = await checkout.sync("--yes", "--again", "--at-once")
    assert code == ExitCode.waits, said
    (asked,) = world.cell.view.approvals.values()
    second = world.client(Grant("bea", Role.operator))
    status, answer = await second.post(f"/v1/approvals/{asked.id}/approve", {"reason": "read it"})
    assert status == 200, answer
    assert (await checkout.active() or {})["commit"] == commit


async def test_a_pipelines_checkout_has_no_branch_and_a_shallow_one_not_the_active_commit(
    checkout: Checkout, tmp_path: Path
) -> None:
    """The ways of the how-to's pipelines and timer: a clone that pulls, a detached commit, a clone of depth one."""
    checkout.commit()
    clone, shallow = tmp_path / "clone", tmp_path / "shallow"
    checkout.git("clone", "-q", str(checkout.folder), str(clone))
    first = checkout.commit(fleet=FOUR)
    pulled = await run("git", "-C", str(clone), "pull", "--quiet", "--ff-only")
    assert pulled[0] == 0, pulled
    await run("git", "-C", str(clone), "checkout", "-q", "--detach")
    code, said = await checkout.sync("--yes", path=str(clone / "site"))
    assert code == ExitCode.ok, said
    assert await checkout.active() == {"commit": first, "ref": "", "origin": str(checkout.folder)}
    checkout.commit(fleet=FLEET)
    checkout.git("clone", "-q", "--depth=1", f"file://{checkout.folder}", str(shallow))
    code, said = await checkout.sync("--yes", path=str(shallow / "site"))
    assert (code, "git fetch --unshallow" in said) == (ExitCode.refused, True), said


@pytest.mark.parametrize(
    "source",
    [
        {"commit": "abc"},
        {"commit": "a" * 40, "origin": "https://ann:s3cret@git.example.org/x"},
        {"commit": "a" * 40, "ref": "two words"},
        {"commit": ""},
    ],
)
async def test_a_source_that_is_none_is_refused_whole(checkout: Checkout, source: dict[str, str]) -> None:
    body = {"documents": {**DOCUMENTS, "fleet.yaml": FOUR}, "reason": "r", "source": source}
    assert (await checkout.world.operator.post("/v1/config", body))[0] in (400, 422)
    assert checkout.world.cell.view.configuration.pools["alpha"].target == 3
