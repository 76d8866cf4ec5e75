"""The device that a check computes on: NumPy on the CPU, PyTorch on GPUs, one text for both through the array API.

Code that needs more than arrays (synchronising, pinned copies, free memory) asks the device.
"""

import contextlib
import importlib
import os
import platform
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

TWIN, TORCH = "twin", "torch"
"""Devices on the CPU for tests: one that plays a GPU with NumPy, so that checks for GPUs alone can be seen to fail, and
one that computes with PyTorch, as GPUs do."""
TF32 = "tf32"


class UnableError(Exception):
    """The check cannot be run here; the message says what is missing."""


def torch_or_none() -> ModuleType | None:
    """PyTorch, where this interpreter has it and it loads."""
    try:
        return importlib.import_module("torch")
    except (ImportError, OSError, ValueError):  # a wheel without its libraries raises the last
        return None


def gpus() -> list[str]:
    """The names of the GPUs that PyTorch finds, in its order."""
    torch = torch_or_none()
    if torch is None or not torch.cuda.is_available():
        return []
    return [str(torch.cuda.get_device_name(index)) for index in range(torch.cuda.device_count())]


class Device:
    """One device. `part` is "cpu", "gpuN", TWIN or TORCH; raises UnableError where it is not there."""

    def __init__(self, part: str) -> None:
        import array_api_compat  # noqa: PLC0415 - the parent of children never needs it

        self._compat: Any = array_api_compat
        self.part = part
        self.is_gpu = part.startswith("gpu") or part == TWIN
        self.is_cuda = part.startswith("gpu")
        self.torch: Any = torch_or_none() if part == TORCH else None
        self.place: Any = "cpu"
        if part.startswith("gpu"):
            self.torch = _torch_with(int(part.removeprefix("gpu")))
            self.place = f"cuda:{part.removeprefix('gpu')}"
        probe = self.torch.zeros(1, device=self.place) if self.torch else np.zeros(1)
        self.xp: Any = array_api_compat.array_namespace(probe)

    @property
    def name(self) -> str:
        """The device's model: a GPU's name, or "cpu " and the processor's."""
        if self.is_cuda:
            return str(self.torch.cuda.get_device_name(self.place))
        return f"cpu {processor()}"

    def zeros(self, words: int) -> Any:
        """An array of whole numbers of 64 bits."""
        if self.torch is None:
            return np.zeros(words, dtype=np.int64)
        return self.torch.zeros(words, dtype=self.torch.int64, device=self.place)

    def put(self, host: Any, dtype: str = "fp32") -> Any:
        """An array of the host on the device, in one of fp64, fp32, tf32, fp16, bf16."""
        if self.torch is None:
            kind = {"fp64": np.float64, "fp32": np.float32, TF32: np.float32, "fp16": np.float16}.get(dtype)
            if kind is None:
                raise UnableError(f"NumPy has no {dtype}")
            return np.asarray(host).astype(kind)
        torch = self.torch
        torch.backends.cuda.matmul.allow_tf32 = dtype == TF32
        kinds = {"fp64": torch.float64, "fp32": torch.float32, TF32: torch.float32}
        kinds |= {"fp16": torch.float16, "bf16": torch.bfloat16}
        return torch.from_numpy(np.ascontiguousarray(host)).to(self.place).to(kinds[dtype])

    def host(self, array: Any) -> Any:
        """The array's bits on the host, as NumPy has them; bf16 comes as fp32, which holds all its values."""
        if self.torch is None:
            return np.array(array)
        whole = array.float() if array.dtype == self.torch.bfloat16 else array
        return whole.cpu().numpy()

    def copy(self, source: Any, target: Any) -> None:
        """Copy one array into another of its shape."""
        if self.torch is None:
            np.copyto(target, source)
        else:
            target.copy_(source)

    def sync(self) -> None:
        """Wait until all work that was given to the device is done."""
        if self.is_cuda:
            self.torch.cuda.synchronize(self.place)

    def free_bytes(self) -> int:
        """Memory that nobody has taken."""
        if self.is_cuda:
            return int(self.torch.cuda.mem_get_info(self.place)[0])
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")

    def stack(self) -> dict[str, str]:
        """Key of results that must be equal to the bit: device, driver, libraries, threads."""
        told = {"device": self.name, "numpy": np.__version__, "blas": _loaded_blas(), "threads": _threads(self.torch)}
        if self.torch is not None:
            told |= {"torch": str(self.torch.__version__), "cuda": str(self.torch.version.cuda), "driver": driver()}
        else:
            told |= {"kernel_choice": os.environ.get("OPENBLAS_CORETYPE", "")}
        return told


def _torch_with(index: int) -> Any:
    torch = torch_or_none()
    if torch is None:
        raise UnableError("no PyTorch: install hostler-checks[torch]")
    if not torch.cuda.is_available() or index >= torch.cuda.device_count():
        raise UnableError(f"PyTorch {torch.__version__} finds no GPU {index}")
    return torch


def processor() -> str:
    """The processor's model, as /proc/cpuinfo names it."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text("utf-8", "replace").splitlines():
            if line.startswith("model name"):
                family = line.partition(":")[2].strip()
                return f"{family} {platform.machine()}"
    return platform.machine()


def driver() -> str:
    """The version of NVIDIA's kernel driver, "" where none is loaded."""
    with contextlib.suppress(OSError):
        return Path("/sys/module/nvidia/version").read_text("ascii", "replace").strip()
    return ""


def _threads(torch: Any) -> str:
    if torch is not None:
        return str(torch.get_num_threads())
    return os.environ.get("OMP_NUM_THREADS") or str(len(os.sched_getaffinity(0)))


def _loaded_blas() -> str:
    """File names of the BLAS libraries that this process has loaded; a wheel's name carries a digest of it."""
    found: set[str] = set()
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/maps").read_text("utf-8", "replace").splitlines():
            path = line.partition("/")[2]
            name = path.rpartition("/")[2]
            if "blas" in name or "mkl_rt" in name:
                found.add(name)
    return " ".join(sorted(found))
