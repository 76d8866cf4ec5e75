"""NVML's list of GPUs, read in a child process of its own, because NVML calls hang when a GPU does."""

import importlib
import sys
from typing import Any

import msgspec
from msgspec import Struct

from hostler.agent import child_process
from hostler.agent.collectors import nvml_twin
from hostler.core.state.input_problems import UNREADABLE

DEADLINE_S = 20.0


class NvmlGpu(Struct, frozen=True):
    """One GPU as NVML sees it. Text that could not be read is ""."""

    index: int
    pci: str
    uuid: str = ""
    serial: str = ""
    name: str = ""
    vbios: str = ""
    memory_mib: int = 0


class NvmlInventory(Struct, frozen=True):
    """Inventory of all GPUs and the driver; `unavailable` says why there is nothing, "" where NVML answered."""

    gpus: tuple[NvmlGpu, ...] = ()
    driver: str = ""
    unavailable: str = ""


def report(deadline_s: float = DEADLINE_S, twin: str = "") -> NvmlInventory:
    """Ask NVML, or recorded GPUs, in a child. Never raises: a hang or crash is a Report with a reason."""
    try:
        done = child_process.run((sys.executable, "-m", "hostler.agent.collectors.nvml_inventory", twin), deadline_s)
        return msgspec.json.decode(done.output, type=NvmlInventory)
    except child_process.HungError as error:
        return NvmlInventory(unavailable=f"hung: {error}")
    except (OSError, *UNREADABLE) as error:
        return NvmlInventory(unavailable=f"crashed: {error}")


def ask(twin: str = "") -> NvmlInventory:
    """Ask NVML in this process; `twin` is a file of recorded GPUs, "" for the driver's library."""
    try:
        nvml: Any = nvml_twin.NvmlTwin(twin) if twin else importlib.import_module("pynvml")
    except ImportError:
        return NvmlInventory(unavailable="nvidia-ml-py is not installed")
    try:
        nvml.nvmlInit()
        gpus = tuple(_gpu(nvml, index) for index in range(nvml.nvmlDeviceGetCount()))
        return NvmlInventory(gpus, _text(nvml, nvml.nvmlSystemGetDriverVersion))
    except nvml.NVMLError as error:
        return NvmlInventory(unavailable=str(error))


def _gpu(nvml: Any, index: int) -> NvmlGpu:
    handle = nvml.nvmlDeviceGetHandleByIndex(index)
    return NvmlGpu(
        index=index,
        pci=_text(nvml, lambda: nvml.nvmlDeviceGetPciInfo(handle).busId),
        uuid=_text(nvml, nvml.nvmlDeviceGetUUID, handle),
        serial=_text(nvml, nvml.nvmlDeviceGetSerial, handle),
        name=_text(nvml, nvml.nvmlDeviceGetName, handle),
        vbios=_text(nvml, nvml.nvmlDeviceGetVbiosVersion, handle),
        memory_mib=_memory_mib(nvml, handle),
    )


def _text(nvml: Any, ask_for: Any, *args: Any) -> str:
    try:
        answer = ask_for(*args)
    except nvml.NVMLError:
        return ""
    return answer.decode("utf-8", "replace") if isinstance(answer, bytes) else str(answer)


def _memory_mib(nvml: Any, handle: Any) -> int:
    try:
        return int(nvml.nvmlDeviceGetMemoryInfo(handle).total) >> 20
    except nvml.NVMLError:
        return 0


if __name__ == "__main__":
    sys.stdout.buffer.write(msgspec.json.encode(ask(*sys.argv[1:2])))
