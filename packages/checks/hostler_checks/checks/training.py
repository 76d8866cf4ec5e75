"""Training replayed: a small GPT with AdamW, the bits of weights, gradients and losses at every k-th step.

Two runs from the same seed on one device must agree bit for bit; peers with the same stack must agree with both.
"""

import importlib
from contextlib import nullcontext
from hashlib import sha256
from typing import Any

from hostler_checks.answers import Answer
from hostler_checks.device import UnableError, torch_or_none
from hostler_checks.work import Work, median

SEED, HEADS, WORDS = 11, 4, 256


def replay(work: Work) -> Answer:
    """Train from the same seed at least twice, again and again while there is time."""
    torch = work.device.torch or torch_or_none()
    if torch is None:
        raise UnableError("no PyTorch: install hostler-checks[torch]")
    torch.use_deterministic_algorithms(mode=True)
    if not work.device.is_gpu:
        torch.set_num_threads(1)
    times: list[float] = []
    first: list[str] = []
    faults: tuple[str, ...] = ()
    rounds = work.rounds(least=2)
    for turn in rounds:
        run = _train(work, torch, times, first=turn == 0)
        first = first or run
        if run != first:
            step = next(at for at, (one, other) in enumerate(zip(first, run, strict=True), 1) if one != other)
            faults = (f"run {turn} differs from the first by step {step * int(work.params['every'])}",)
            break
    digest = sha256("".join(first).encode()).hexdigest()
    steps = int(work.params["steps"])
    answer = work.answer(
        f"{rounds.count} trainings of {steps} steps",
        {"step_ms": median(times) * 1e3},
        digest=digest,
        faults=faults,
    )
    extra = {"torch": str(torch.__version__), "train threads": str(torch.get_num_threads()), "dtype": _kind(work)}
    answer.stack.update(extra)
    return answer


def _kind(work: Work) -> str:
    return "bf16 autocast" if work.device.is_gpu else "fp32"


def _train(work: Work, torch: Any, times: list[float], *, first: bool) -> list[str]:
    """One training; a digest for every k-th step."""
    torch.manual_seed(SEED)
    model = _gpt(torch, work).to(work.device.place)
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-3)
    drawn = torch.Generator().manual_seed(SEED)
    batch, length = int(work.params["batch"]), int(work.params["length"])
    digests = []
    for step in range(1, int(work.params["steps"]) + 1):
        words = torch.randint(0, WORDS, (batch, length + 1), generator=drawn).to(work.device.place)
        told: list[Any] = []
        times.append(work.timed(lambda words=words, told=told: told.append(_step(torch, model, optimiser, words))))  # type: ignore[misc]
        if step % int(work.params["every"]) == 0:
            _spoil(work, torch, model, first=first)
            digests.append(_digest(work, model, told[0]))
    return digests


def _step(torch: Any, model: Any, optimiser: Any, words: Any) -> Any:
    """Forward, backward, optimiser; the loss."""
    optimiser.zero_grad(set_to_none=True)
    half = torch.autocast("cuda", dtype=torch.bfloat16) if words.is_cuda else nullcontext()
    with half:
        said = model(words[:, :-1])
    loss = torch.nn.functional.cross_entropy(said.float().flatten(0, 1), words[:, 1:].flatten())
    loss.backward()
    optimiser.step()
    return loss.detach()


def _digest(work: Work, model: Any, loss: Any) -> str:
    said = sha256(work.device.host(loss).tobytes() if work.device.torch else loss.numpy().tobytes())
    for weight in model.parameters():
        said.update(weight.detach().float().cpu().numpy().tobytes())
        said.update(weight.grad.float().cpu().numpy().tobytes())
    return said.hexdigest()


def _spoil(work: Work, torch: Any, model: Any, *, first: bool) -> None:
    """With a flip planted, the lowest bit of one gradient's element is changed."""
    if work.plant == "bit_flip" or (work.plant == "flaky_bit" and not first):
        gradient = next(iter(model.parameters())).grad
        flat = gradient.view(-1)
        flat[:1] = (flat[:1].view(torch.int32) ^ 1).view(torch.float32)


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
