"""Training replayed: forward, backward, AdamW; the bits of weights, gradients, buffers and loss at every k-th step.

Two runs from the same seed on one device must agree bit for bit; peers with the same stack must agree with both.
The suite's own model is a small GPT; a site's own module (`own_module`) is trained by the same steps.
"""

import importlib
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from hostler_checks.answers import Answer
from hostler_checks.device import UnableError, torch_or_none
from hostler_checks.work import Work, median

SEED, HEADS, WORDS = 11, 4, 256


@dataclass(frozen=True)
class Trainee:
    """A model on its device, its optimiser, and the loss of a step."""

    model: Any
    optimiser: Any
    loss: Callable[[int], Any]


def replay(work: Work) -> Answer:
    """Train from the same seed at least twice, again and again while there is time."""
    torch = prepared(work)
    times: list[float] = []
    first: list[str] = []
    faults: tuple[str, ...] = ()
    loss = 0.0
    rounds = work.rounds(least=2)
    for turn in rounds:
        run, loss = trained(work, torch, _own(work, torch), times, first=turn == 0)
        first = first or run
        if run != first:
            step = differing(first, run) * int(work.params["every"])
            faults = (f"run {turn} differs from the first by step {step}",)
            break
    digest = sha256("".join(first).encode()).hexdigest()
    answer = work.answer(
        f"{rounds.count} trainings of {int(work.params['steps'])} steps",
        {"step_ms": median(times) * 1e3, "loss": loss},
        digest=digest,
        faults=faults,
    )
    answer.stack.update(stack(work, torch))
    return answer


def prepared(work: Work) -> Any:
    """PyTorch, told to repeat its bits. Raises UnableError where there is none."""
    torch = work.device.torch or torch_or_none()
    if torch is None:
        raise UnableError("no PyTorch: install hostler-checks[torch]")
    torch.use_deterministic_algorithms(mode=True)
    if not work.device.is_gpu:
        torch.set_num_threads(1)
    return torch


def stack(work: Work, torch: Any) -> dict[str, str]:
    """Words for whatever changes the bits of a training besides the device's own stack."""
    kind = "bf16 autocast" if _halves(work, torch) else "fp32"
    return {"torch": str(torch.__version__), "train threads": str(torch.get_num_threads()), "dtype": kind}


def trained(work: Work, torch: Any, one: Trainee, times: list[float], *, first: bool) -> tuple[list[str], float]:
    """One training: a digest for every k-th step, and the last loss, or the first that is no number."""
    digests: list[str] = []
    told = 0.0
    for step in range(1, int(work.params["steps"]) + 1):
        losses: list[Any] = []
        times.append(work.timed(lambda step=step, losses=losses: losses.append(_step(work, torch, one, step))))  # type: ignore[misc]
        told = float(losses[0]) if told == told else told  # noqa: PLR0124 - NaN alone differs from itself
        if step % int(work.params["every"]) == 0:
            _spoil(work, torch, one.model, first=first)
            digests.append(_digest(torch, one.model, losses[0]))
    return digests, told


def differing(one: list[str], other: list[str]) -> int:
    """Number, from 1, of the first digest in which two runs differ."""
    return next(at for at, (left, right) in enumerate(zip(one, other, strict=True), 1) if left != right)


def _halves(work: Work, torch: Any) -> bool:
    return bool(work.device.is_cuda and torch.cuda.is_bf16_supported())


def _step(work: Work, torch: Any, one: Trainee, step: int) -> Any:
    """Forward, backward, optimiser; the loss."""
    one.optimiser.zero_grad(set_to_none=True)
    with torch.autocast("cuda", dtype=torch.bfloat16) if _halves(work, torch) else nullcontext():
        loss = one.loss(step)
    loss.backward()
    one.optimiser.step()
    return loss.detach()


def bits_of(torch: Any, tensors: Iterable[Any]) -> str:
    """SHA-256 over kinds, shapes and bits of tensors; None is one without any."""
    said = sha256()
    for tensor in tensors:
        if tensor is None:
            said.update(b"none")
            continue
        held = tensor.detach().cpu().contiguous()
        said.update(f"{held.dtype} {tuple(held.shape)}".encode())
        held = torch.view_as_real(held) if held.is_complex() else held
        said.update(held.reshape(-1).view(torch.uint8).numpy().tobytes())
    return said.hexdigest()


def _digest(torch: Any, model: Any, loss: Any) -> str:
    weights = [tensor for weight in model.parameters() for tensor in (weight, weight.grad)]
    return bits_of(torch, (loss, *weights, *model.buffers()))


def _spoil(work: Work, torch: Any, model: Any, *, first: bool) -> None:
    """With a flip planted, the lowest bit of one gradient's element is changed."""
    if work.plant == "bit_flip" or (work.plant == "flaky_bit" and not first):
        gradient = next(weight.grad for weight in model.parameters() if weight.grad is not None)
        flat = gradient.view(-1)
        flat[:1] = (flat[:1].view(torch.int32) ^ 1).view(torch.float32)


def _own(work: Work, torch: Any) -> Trainee:
    """The suite's own model, and new words for each step."""
    torch.manual_seed(SEED)
    model = _gpt(torch, work).to(work.device.place)
    drawn = torch.Generator().manual_seed(SEED)
    batch, length = int(work.params["batch"]), int(work.params["length"])

    def loss(_: int) -> Any:
        words = torch.randint(0, WORDS, (batch, length + 1), generator=drawn).to(work.device.place)
        said = model(words[:, :-1])
        return torch.nn.functional.cross_entropy(said.float().flatten(0, 1), words[:, 1:].flatten())

    return Trainee(model, torch.optim.AdamW(model.parameters(), lr=1e-3), loss)


def _gpt(torch: Any, work: Work) -> Any:
    """Embeddings, pre-norm blocks of attention and a feed-forward layer, and a head.

    Activations are checkpointed: backward computes each block again, as trainings of large models do.
    """
    nn, again = torch.nn, importlib.import_module("torch.utils.checkpoint")
    width, length = int(work.params["width"]), int(work.params["length"])

    class Block(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.feed = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
            self.register_buffer("mask", torch.full((length, length), float("-inf")).triu(1))

        def forward(self, x: Any) -> Any:
            x = x + self.out(_attention(torch, self.qkv(self.before(x)), self.mask))
            return x + self.feed(self.between(x))

    class Gpt(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.words, self.places = nn.Embedding(WORDS, width), nn.Parameter(torch.zeros(length, width))
            self.blocks = nn.ModuleList(Block() for _ in range(int(work.params["blocks"])))
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, WORDS)

        def forward(self, words: Any) -> Any:
            x = self.words(words) + self.places
            for block in self.blocks:
                x = again.checkpoint(block, x, use_reentrant=False)
            return self.head(self.norm(x))

    return Gpt()


def _attention(torch: Any, qkv: Any, mask: Any) -> Any:
    """Causal attention written out, so that every version of PyTorch computes it with the same products."""
    batch, length, _ = qkv.shape
    q, k, v = (part.view(batch, length, HEADS, -1).transpose(1, 2) for part in qkv.chunk(3, dim=-1))
    weights = torch.softmax(q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5 + mask, dim=-1)
    return (weights @ v).transpose(1, 2).reshape(batch, length, -1)
