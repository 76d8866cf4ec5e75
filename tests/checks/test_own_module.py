"""A site's own module under the replayed training: sound ones are compared, broken and hostile ones accuse no node.

Runs on Debian's PyTorch, on the CPU.
"""

import dataclasses
import json
import subprocess
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from hostler.agent.checks.check_suite import CheckSuite, SuiteSettings
from hostler.core.diagnose.gate.told_bits import read_bits
from hostler_checks import site_checks
from hostler_checks.answers import CheckResult
from hostler_checks.profiles import parsed
from hostler_checks.reference import Golden, Reference, learn, stack_key
from hostler_checks.runner import CheckRunner, Request
from hostler_checks.yaml_reader import ProfileError
from tests.checks.own_modules import HEAD, PARAMS, SOUND, in_forward
from tests.checks.suite_runs import PACKAGE, PYTHON, argv, env, planting, quiet, told

pytestmark = pytest.mark.nightly("processes compute with tensors")

Train = Callable[..., CheckResult]


@pytest.fixture
def train(monkeypatch: pytest.MonkeyPatch, site: Path, tmp_path: Path) -> Train:
    """Train the module of this text in a child, small."""
    planting(monkeypatch)
    monkeypatch.setenv("PYTHONPATH", str(site))

    def run(text: str, plant: str = "", reference: Reference | None = None, deadline_s: float = 60.0) -> CheckResult:
        file = tmp_path / "net.py"
        file.write_text(text)
        step = site_checks.model_step(f"{file}:build", [], 0.1)
        spec = dataclasses.replace(step.spec, deadline_s=deadline_s)
        asked = Request(spec, "cpu", 0.1, {**step.params, **PARAMS}, plant=plant)
        return CheckRunner(reference, python=PYTHON, watch=quiet).run([asked])[0]

    return run


def golden_of(found: CheckResult) -> Reference:
    golden = Golden(found.check, found.digest, 3, found.stack)
    return Reference({stack_key(found.check, found.version, found.stack): golden})


def test_a_sound_module_repeats_its_bits_and_peers_decide(train: Train) -> None:
    """Three nodes that agree make its golden; what nobody can be compared with is not missing."""
    first, second = train(SOUND), train(SOUND)
    assert first.digest == second.digest != ""
    assert (first.verdict, first.required) == ("inconclusive", False)
    assert "no golden of this stack" in first.detail
    known, _ = learn([(name, first) for name in ("n1", "n2", "n3")])
    passed = train(SOUND, reference=known)
    assert (passed.verdict, passed.basis) == ("passed", ("golden of 3 peers",)), passed.detail
    assert passed.stack["model"].startswith("net.py:build ")
    assert "param model" not in passed.stack


@pytest.mark.parametrize(("plant", "verdict"), [("bit_flip", "suspect"), ("flaky_bit", "suspect")])
def test_wrong_bits_are_found_beside_peers(plant: str, verdict: str, train: Train) -> None:
    known = golden_of(train(SOUND))
    found = train(SOUND, plant, known)
    assert (found.verdict, found.grave) == (verdict, True), found.detail


TURNS = """
        from pathlib import Path
        kept = Path(__file__ + ".turns")
        turn = len(kept.read_bytes()) if kept.exists() else 0
        kept.write_bytes(b"." * (turn + 1))
        x = x * 1.5 if turn == 6 else x"""
ONCE = in_forward(TURNS)


def test_one_run_in_five_that_differs_convicts_only_where_peers_have_one_result(train: Train, tmp_path: Path) -> None:
    """The module is bent once, in its second training, as a flaky unit would. A mutant that convicts without peers
    fails nodes for modules that draw from the clock."""
    known = golden_of(train(SOUND.replace("x, y):\n", "x, y):\n        x = x * 1.0\n")))
    found = train(ONCE)
    assert (found.verdict, found.required) == ("inconclusive", True)
    assert "5 trainings of 4 steps, 4 of them alike, another differs by step 4" in found.detail
    assert "no peers tell which" in found.detail
    key = stack_key(found.check, found.version, found.stack)
    golden = next(iter(known.goldens.values()))
    (tmp_path / "net.py.turns").unlink()
    convicted = train(ONCE, reference=Reference({key: dataclasses.replace(golden, digest=found.digest)}))
    assert (convicted.verdict, convicted.basis) == ("failed", ("replay", "golden of 3 peers")), convicted.detail


RETURNS, MSE = 'return Net(shapes["width"]), (x, y)', "mse_loss(self.layers(x), y)"
FROZEN = "\n_build = build\ndef build(*_):\n    net, batch = _build(*_)\n    return net.requires_grad_(False), batch\n"
UNSEEDED = "import os; torch.manual_seed(int.from_bytes(os.urandom(4), 'big'))\n    return Net("
PIPE = "int(os.environ.pop('HOSTLER_CHECKS_ANSWER_FD'))"
BROKEN = {
    "import error": (HEAD + "import no_such_thing\n", "it cannot be imported: ModuleNotFoundError"),
    "syntax": ("def build(:\n", "it cannot be imported: SyntaxError"),
    "no function": (HEAD, "it cannot be imported: AttributeError"),
    "no callable": ("build = 3\n", "build is no function"),
    "raises": ("def build(*_):\n    raise KeyError('width')\n", "it cannot be built: KeyError: 'width'"),
    "no module": ("def build(*_):\n    return 1, 2\n", "a torch.nn.Module and a batch are expected"),
    "no batch": (SOUND.replace(RETURNS, "return Net(8), 3"), "its batch has no tensor"),
    "no parameters": (HEAD + "def build(*_):\n    return nn.ReLU(), torch.ones(1)\n", "no parameters to train"),
    "frozen": (SOUND + FROZEN, "no parameters to train"),
    "no loss": (SOUND.replace(MSE, "relu(self.layers(x))"), "gives Tensor of shape (2, 1) where a loss"),
    "no gradient": (SOUND.replace(MSE, "mse_loss(x[:, :1], y)"), "does not depend on its parameters"),
    "wrong shapes": (in_forward("x = x[:, :3]"), "it cannot be trained: RuntimeError"),
    "nan": (SOUND.replace(MSE, f"{MSE} * float('nan')"), "loss is nan"),
    "clock": (in_forward("import time; x = x + time.perf_counter_ns() % 1009"), "it does not repeat itself: of 5"),
    "unseeded": (SOUND.replace("return Net(", UNSEEDED), "not built from its seed"),
    "threads": ("import torch; torch.set_num_threads(2)\n" + SOUND, "what its bits depend on: threads 1 to 2"),
    "determinism": (in_forward("torch.use_deterministic_algorithms(False)"), "algorithms True to False"),
    "exit": ("import sys; sys.exit(0)\n", "ended with 0 and answered nothing"),
    "hard exit": (in_forward("import os; os._exit(0)"), "ended with 0 and answered nothing"),
    "crash": (in_forward("import os; os.kill(os.getpid(), 11)"), "was ended by signal 11"),
    "gigabyte": (in_forward("import os; [os.write(1, b'x' * (1 << 20)) for _ in range(1024)]"), "more than 1 MiB"),
    "answers itself": (in_forward(f"import os; os.write({PIPE}, b'{{}}') if x.sum() else 0"), "answer"),
    "closes the pipe": (in_forward(f"import os; os.close({PIPE})"), "answered nothing"),
    "lingering thread": ("import threading, time; threading.Thread(target=time.sleep, args=(600,)).start()", "hung"),
    "hang": (in_forward("import time; time.sleep(600)"), "it hung, at a deadline of 8.2 s"),
}


@pytest.mark.parametrize("wrong", BROKEN)
def test_what_is_wrong_with_a_module_is_said_and_convicts_nobody(wrong: str, train: Train) -> None:
    """A mutant that takes an exception for a fault fails a node for want of code."""
    text, said = BROKEN[wrong]
    found = train(text, deadline_s=8.0 if wrong in ("hang", "lingering thread") else 60.0)
    assert (found.verdict, said in found.detail) == ("inconclusive", True), found.detail
    assert found.required, "the site asked for it: a profile does not pass without it"


def test_random_numbers_of_every_library_are_seeded(train: Train) -> None:
    text = in_forward("import random, numpy; x = x + random.random() + float(numpy.random.rand()) + hash('a') % 7")
    first, second = train(text), train(text)
    assert first.digest == second.digest != "", first.detail


def test_another_source_or_other_parameters_are_another_stack(train: Train, tmp_path: Path) -> None:
    """A file that it imports counts too. A mutant that hashes the named file alone compares two models."""
    (tmp_path / "layers.py").write_text("WIDTH = 1\n")
    text = SOUND.replace("import torch\n", "import torch\nimport layers\n", 1)
    keys = [found.key for found in (train(text), train(text))]
    (tmp_path / "layers.py").write_text("WIDTH = 2\n")
    keys.append(train(text).key)
    keys.append(train(text.replace("nn.Linear(width, 1)", "nn.Linear(width, 1, bias=False)")).key)
    assert keys[0] == keys[1] != ""
    assert len(set(keys)) == 3


def test_a_file_that_others_may_write_is_not_run(train: Train, tmp_path: Path) -> None:
    train(SOUND)
    (tmp_path / "net.py").chmod(0o666)
    found = train("raise SystemExit\n")
    assert (found.verdict, "others than its owner may write it; chmod go-w" in found.detail) == ("inconclusive", True)


PROFILE = "profile: {name}\nfor: 1s\nstages: [{{checks: [{{check: gemm_abft, seconds: 0.2s, with: {{n: 64}}}}]}}]\n"


@pytest.mark.parametrize(
    ("text", "verdict", "code"),
    [(SOUND, "passed", 0), ("import nothing_here\n", "inconclusive", 3)],
    ids=["sound", "broken"],
)
def test_the_command_trains_it_and_a_broken_one_keeps_the_profile_from_passing(
    text: str, verdict: str, code: int, site: Path, tmp_path: Path
) -> None:
    (tmp_path / "net.py").write_text(text)
    (tmp_path / "small.yaml").write_text(PROFILE.format(name="gate"))
    words = argv(tmp_path / "s", "--profile", str(tmp_path / "small.yaml"), "--model", f"{tmp_path}/net.py:build")
    more = ["--model-for", "0.2s", "--model-shape", "batch=2", "width=8"]
    there = env(PYTHONPATH=str(site))
    done = subprocess.run([PYTHON, *words[1:], *more], capture_output=True, text=True, check=False, env=there)
    report = told(done)
    assert (report["verdict"], done.returncode) == (verdict, code), report["detail"]
    (model,) = (one for one in report["latest"] if one["check"] == "train_model")
    assert model["verdict"] == "inconclusive"
    assert ("not judged: train_model/cpu" in report["detail"]) is (verdict == "passed")


@pytest.mark.smoke
@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--model", "net.py"], "names no model"),
        (["--model", "a b:build"], "names no model"),
        (["--model", "/x/net.py:build", "--model-shape", "batch"], "is no shape"),
        (["--model", "/x/net.py:build", "--model-shape", "batch=0"], "is no shape"),
        (["--model", "/x/net.py:build", "--model-for", "soon"], "no length of time"),
    ],
)
def test_a_model_that_is_none_is_refused_at_once(options: list[str], said: str, tmp_path: Path) -> None:
    done = subprocess.run(argv(tmp_path, *options), capture_output=True, text=True, check=False, env=env())
    assert (done.returncode, said in done.stderr) == (3, True), done.stderr


SITE = """check: acme_gpt
detects: corruption as our model meets it
model: /opt/acme/gpt.py:build
shapes: {batch: 4, length: 512}
steps: 20
every: 5
seconds: 10min
deadline: 30min
profiles: [burn_in, suspect, idle]
"""


@pytest.mark.smoke
def test_a_sites_file_names_its_module() -> None:
    step, profiles = site_checks.parsed(SITE, "acme.yaml")
    assert profiles == ("burn_in", "suspect", "idle")
    assert (step.spec.name, step.spec.entry, step.spec.deadline_s) == ("acme_gpt", "own_module:replay", 1800.0)
    assert (step.spec.host, step.spec.golden, step.spec.sites) == (False, True, True)
    shapes = {"batch": 4, "length": 512}
    assert step.params == {"model": "/opt/acme/gpt.py:build", "shapes": shapes, "steps": 20, "every": 5}
    assert json.loads(json.dumps(step.params)) == step.params


@pytest.mark.smoke
@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("model: /opt/acme/gpt.py:build", "model: gpt.py", "names no model"),
        ("batch: 4", "batch: many", "a number is expected"),
        ("every: 5", "every: 50", "nothing would be compared"),
        ("steps: 20", "script: x", "one of these"),
        ("steps: 20", "tool: fio", "tool is for checks with command"),
        ("check: acme_gpt", "check: train_replay", "is taken by the suite"),
        ("check: acme_gpt", "check: train_model", "is taken by the suite"),
    ],
)
def test_a_sites_file_that_is_wrong_is_refused(before: str, after: str, said: str) -> None:
    with pytest.raises(ProfileError, match=said):
        site_checks.parsed(SITE.replace(before, after), "acme.yaml")


@pytest.mark.smoke
def test_a_command_takes_no_shapes() -> None:
    with pytest.raises(ProfileError, match="shapes is for checks with model"):
        site_checks.parsed("check: a\nscript: 'true'\nshapes: {batch: 1}\n", "a.yaml")


def test_the_example_of_the_how_to_is_trained(train: Train) -> None:
    """The function as it stands in the how-to, and the file beside it."""
    page = (PACKAGE.parents[1] / "docs/how-to/train-your-own-model.md").read_text()
    code, site = (page.partition(f"```{kind}\n")[2].partition("```")[0] for kind in ("python", "yaml"))
    found = train(textwrap.dedent(code))
    assert (found.verdict, "no golden of this stack" in found.detail) == ("inconclusive", True), found.detail
    step, profiles = site_checks.parsed(textwrap.dedent(site), "acme_model.yaml")
    assert (step.params["model"], len(profiles)) == ("/opt/acme/model.py:build", 3)


def test_the_agent_brings_its_bits_to_the_controller(site: Path, tmp_path: Path) -> None:
    """From a file of the site's checks, through suite and agent, as the controller reads them."""
    place = tmp_path / "suite.d"
    place.mkdir()
    (tmp_path / "net.py").write_text(SOUND)
    rows = {"check": "acme_gpt", "model": f"{tmp_path}/net.py:build", "seconds": "0.2s", "steps": 4, "every": 2}
    written = [f"{name}: {value}\n" for name, value in rows.items()]
    (place / "acme.yaml").write_text("".join([*written, "shapes: {batch: 2, width: 8}\nprofiles: [suspect]\n"]))
    own = tmp_path / "small.yaml"
    own.write_text(PROFILE.format(name="suspect"))
    program = tmp_path / "hostler-check"
    words = f'exec {PYTHON} -m hostler_checks.main "$@" --profile {own} --device cpu --site {place}'
    program.write_text(f"#!/bin/sh\nPYTHONPATH={site} OMP_NUM_THREADS=1 {words}\n")
    program.chmod(0o755)
    found = CheckSuite("n1", tmp_path / "checks", SuiteSettings(str(program))).check("suspect", "o1")
    assert (found.verdict.value, "acme_gpt/cpu" in found.detail) == ("passed", True), found.detail
    told, unreadable = read_bits(found.facts)
    (bits,) = told
    assert (unreadable, bits.check, bits.part) == ("", "acme_gpt", "cpu")
    assert bits.stack["model"].startswith("net.py:build ")
    assert str(tmp_path) not in str(bits.stack), "where the file lies is no part of the stack"


@pytest.mark.smoke
def test_a_module_stands_behind_the_profiles_own_stages() -> None:
    profile = parsed(PROFILE.format(name="gate"), "small.yaml")
    step = site_checks.model_step("acme.models:build", ["batch=4"], 60.0)
    more = site_checks.with_steps(profile, [step])
    assert [stage.name for stage in more.stages] == ["checks", "site"]
    assert more.stages[-1].steps[0].params["shapes"] == {"batch": 4}
