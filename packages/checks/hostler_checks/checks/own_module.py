"""A site's own module under the replayed training: found, built from a seed, trained, and never blamed on the node.

`FILE.py:NAME` or `package.module:NAME` names a function of a seed and shapes that gives a `torch.nn.Module` and a
batch; the module called with the batch gives a loss. It is code of the site's, so whatever it does wrong says nothing
of the node: what cannot be loaded, built or trained is *unable*, and runs that differ convict only where peers have
shown that the module repeats itself.
"""

import importlib
import importlib.util
import os
import random
import sys
import sysconfig
from collections import Counter
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from hostler_checks.answers import Answer, clean
from hostler_checks.checks.training import SEED, Trainee, bits_of, differing, prepared, stack, trained
from hostler_checks.device import UnableError
from hostler_checks.trusted_files import UntrustedError, refuse_untrusted
from hostler_checks.work import Work, median

TURNS = 5
"""Trainings at least, once two have differed: most of them tell what the module's bits are."""
MAX_SOURCES, MAX_SOURCE_BYTES = 20_000, 1 << 30
LEARNING_RATE = 1e-4
Build = Callable[[int, Mapping[str, int]], tuple[Any, Any]]


def replay(work: Work) -> Answer:
    """Build and train from the same seed at least twice, again and again while there is time."""
    entry = str(work.params["model"])
    torch = prepared(work)
    before, settings = set(sys.modules), _settings(torch)
    build = _entry(entry)
    times: list[float] = []
    runs: list[tuple[str, ...]] = []
    begins: set[str] = set()
    loss = 0.0
    for turn in work.rounds(least=2):
        run, begin, loss = _run(work, torch, build, times, first=turn == 0)
        runs.append(run)
        begins.add(begin)
        _need_same(settings, _settings(torch))
        if len(set(runs)) > 1 and len(runs) >= TURNS:
            break
    while len(set(runs)) > 1 and len(runs) < TURNS:
        runs.append(_run(work, torch, build, times, first=False)[0])
    if len(begins) > 1:
        raise UnableError(f"{entry}: it is not built from its seed: two builds have other weights, buffers or batches")
    usual = _usual(runs, entry)
    answer = work.answer(
        _looked(runs, usual, work),
        {"model_step_ms": median(times) * 1e3, "loss": loss},
        digest=_whole(usual),
        replays=tuple(sorted({_whole(run) for run in runs})) if len(set(runs)) > 1 else (),
    )
    answer.stack.pop("param model", None)
    answer.stack.update(stack(work, torch) | _kinds(torch))
    answer.stack.update({"model": f"{_title(entry)} {_sources(before)}", "begin": begins.pop()})
    return answer


def _run(
    work: Work, torch: Any, build: Build, times: list[float], *, first: bool
) -> tuple[tuple[str, ...], str, float]:
    """One training: its digests, the bits it began with, and its loss."""
    entry = str(work.params["model"])
    for seed in (random.seed, np.random.seed, torch.manual_seed):
        seed(SEED)
    shapes = {str(name): int(value) for name, value in dict(work.params["shapes"]).items()}
    model, batch = _built(torch, entry, build, shapes)
    weights = [weight for weight in model.parameters() if weight.requires_grad]
    if not weights:
        raise UnableError(f"{entry}: its module has no parameters to train")
    begin = bits_of(torch, (*model.parameters(), *model.buffers(), *_tensors(torch, batch)))
    model, batch = model.to(work.device.place).train(), _moved(torch, batch, work.device.place)
    trainee = Trainee(model, torch.optim.AdamW(weights, lr=LEARNING_RATE), lambda _: _loss(torch, entry, model, batch))
    try:
        digests, loss = trained(work, torch, trainee, times, first=first)
    except UnableError:
        raise
    except Exception as error:
        raise UnableError(f"{entry}: it cannot be trained: {_said(error)}") from error
    return tuple(digests), begin, loss


def _entry(entry: str) -> Build:
    """The function that an entry names. Raises UnableError."""
    place, _, name = entry.rpartition(":")
    try:
        module = _from_file(Path(place)) if place.endswith(".py") else _from_path(place)
        found = getattr(module, name)
    except UntrustedError as error:
        raise UnableError(f"{entry}: {error}") from error
    except Exception as error:
        raise UnableError(f"{entry}: it cannot be imported: {_said(error)}") from error
    if not callable(found):
        raise UnableError(f"{entry}: {name} is no function")
    return found  # type: ignore[no-any-return]


def _from_file(file: Path) -> ModuleType:
    """Import a file; what lies beside it can be imported by it."""
    refuse_untrusted((file.parent, file), os.geteuid())
    spec = importlib.util.spec_from_file_location(f"_site_{file.stem}", file)
    if spec is None or spec.loader is None:
        raise ImportError(f"{file} is no module")
    sys.path.append(str(file.parent.resolve()))
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def _from_path(name: str) -> ModuleType:
    spec = importlib.util.find_spec(name.partition(".")[0])
    if spec is None or spec.origin is None:
        raise ImportError(f"no module {name.partition('.')[0]}")
    origin = Path(spec.origin)
    refuse_untrusted((origin.parent, origin), os.geteuid())
    return importlib.import_module(name)


def _built(torch: Any, entry: str, build: Build, shapes: Mapping[str, int]) -> tuple[Any, Any]:
    try:
        built = build(SEED, shapes)
    except Exception as error:
        raise UnableError(f"{entry}: it cannot be built: {_said(error)}") from error
    if not isinstance(built, tuple) or len(built) != 2 or not isinstance(built[0], torch.nn.Module):
        raise UnableError(f"{entry}: a torch.nn.Module and a batch are expected, not {type(built).__name__}")
    if not _tensors(torch, built[1]):
        raise UnableError(f"{entry}: its batch has no tensor: one, a tuple, a list or a dict of them is expected")
    return built


def _tensors(torch: Any, batch: Any) -> list[Any]:
    if isinstance(batch, Mapping):
        batch = [batch[name] for name in sorted(batch)]
    every = batch if isinstance(batch, tuple | list) else (batch,)
    return [one for one in every if isinstance(one, torch.Tensor)]


def _moved(torch: Any, batch: Any, place: Any) -> Any:
    if isinstance(batch, Mapping):
        return {name: _moved(torch, one, place) for name, one in batch.items()}
    if isinstance(batch, tuple | list):
        return tuple(_moved(torch, one, place) for one in batch)
    return batch.to(place) if isinstance(batch, torch.Tensor) else batch


def _loss(torch: Any, entry: str, model: Any, batch: Any) -> Any:
    """The loss that a module tells: a tensor of one number, the first of several, or what has `loss`."""
    named = batch if isinstance(batch, Mapping) else {}
    said = model(**named) if named else model(*(batch if isinstance(batch, tuple) else (batch,)))
    loss = said.get("loss") if isinstance(said, Mapping) else getattr(said, "loss", said)
    loss = loss[0] if isinstance(loss, tuple | list) and loss else loss
    if not isinstance(loss, torch.Tensor) or loss.numel() != 1:
        shape = f" of shape {tuple(loss.shape)}" if isinstance(loss, torch.Tensor) else ""
        raise UnableError(
            f"{entry}: its module gives {type(loss).__name__}{shape} where a loss, one number, is expected"
        )
    if not loss.requires_grad:
        raise UnableError(f"{entry}: its loss does not depend on its parameters")
    return loss.float().reshape(())


def _settings(torch: Any) -> dict[str, Any]:
    """PyTorch's settings without which results need not repeat themselves."""
    return {
        "deterministic algorithms": torch.are_deterministic_algorithms_enabled(),
        "cuDNN's benchmark": torch.backends.cudnn.benchmark,
        "threads": torch.get_num_threads(),
        "gradients": torch.is_grad_enabled(),
    }


def _need_same(before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
    told = [f"{name} {value} to {after[name]}" for name, value in before.items() if after[name] != value]
    if told:
        raise UnableError(f"the module changes what its bits depend on: {', '.join(told)}")


def _kinds(torch: Any) -> dict[str, str]:
    """Settings that a module may choose and that change bits: each is another stack."""
    tf32 = f"{torch.backends.cuda.matmul.allow_tf32} {torch.backends.cudnn.allow_tf32}"
    return {"default dtype": str(torch.get_default_dtype()), "tf32": tf32}


def _usual(runs: list[tuple[str, ...]], entry: str) -> tuple[str, ...]:
    """The run that more than half of all agree with. Raises UnableError where there is none."""
    (most, count), *_ = Counter(runs).most_common(1)
    if count * 2 <= len(runs):
        raise UnableError(f"{entry}: it does not repeat itself: of {len(runs)} trainings {count} at most agree")
    return most


def _looked(runs: list[tuple[str, ...]], usual: tuple[str, ...], work: Work) -> str:
    said = f"{len(runs)} trainings of {int(work.params['steps'])} steps"
    other = next((run for run in runs if run != usual), None)
    if other is None:
        return said
    step = differing(list(usual), list(other)) * int(work.params["every"])
    return f"{said}, {runs.count(usual)} of them alike, another differs by step {step}"


def _whole(run: tuple[str, ...]) -> str:
    return sha256("".join(run).encode()).hexdigest()


def _title(entry: str) -> str:
    """The entry without its folder: where a file lies changes no bits."""
    place, _, name = entry.rpartition(":")
    return clean(f"{Path(place).name if place.endswith('.py') else place}:{name}", 100)


def _sources(before: set[str]) -> str:
    """SHA-256 of all files loaded since, without Python's own and PyTorch's: their versions are in the stack."""
    own = tuple(f"{sysconfig.get_path(name)}/" for name in ("stdlib", "platstdlib"))
    said = sha256()
    left = MAX_SOURCE_BYTES
    for name in sorted(set(sys.modules) - before)[:MAX_SOURCES]:
        file = getattr(sys.modules[name], "__file__", None)
        if name.partition(".")[0] in ("torch", "numpy") or not isinstance(file, str):
            continue
        if file.startswith(own) and "/site-packages/" not in file and "/dist-packages/" not in file:
            continue
        data = Path(file).read_bytes()
        if (left := left - len(data)) < 0:
            raise UnableError(f"it imports more than {MAX_SOURCE_BYTES >> 30} GiB of code")
        said.update(f"{name} {sha256(data).hexdigest()}\n".encode())
    return said.hexdigest()


def _said(error: Exception) -> str:
    return clean(f"{type(error).__name__}: {error}", 300)
