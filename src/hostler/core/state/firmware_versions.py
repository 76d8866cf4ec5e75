"""Compares versions of firmware as BMCs report them, and names of components as vendors spell them."""

import re

MAX_COMPARED = 128
"""Characters of a version that are compared."""
OR = " or "
"""Separates the versions that satisfy one component, in the arguments of an operation."""
_NOT_A_NAME = re.compile(r"[^a-z0-9]")
_RUNS = re.compile(r"\d+|[a-z]+")
_BIOS = re.compile(r"(?<!v)bios|uefi", re.IGNORECASE)
_ADAPTER = re.compile(r"infiniband|connectx|hca|^cx\d|^nic\d*$|^mlx|_cx\d", re.IGNORECASE)


def plain_name(name: str) -> str:
    """The component's name without case and separators."""
    return _NOT_A_NAME.sub("", name.lower())


def same_component(one: str, other: str) -> bool:
    """Vendors differ in case and separators of one name ("BIOS", "bios"; "HGX_FW_GPU_0", "hgx-fw-gpu-0")."""
    return plain_name(one) == plain_name(other)


def is_older(one: str, other: str) -> bool | None:
    """Whether the first version precedes the second; None where they cannot be ordered.

    Numbers are compared as numbers, run by run ("1.9" < "1.10"); versions whose letters differ have no order.
    """
    left, right = (_RUNS.findall(text[:MAX_COMPARED].lower()) for text in (one, other))
    if not left or not right:
        return None
    for a, b in zip(left, right, strict=False):
        if a == b or (a.isdigit() and b.isdigit() and int(a) == int(b)):
            continue
        return int(a) < int(b) if a.isdigit() and b.isdigit() else None
    rest = left[len(right) :] or right[len(left) :]
    if not all(run.isdigit() for run in rest):
        return None
    return len(left) < len(right) and any(int(run) for run in rest)


def downgrade(reported: str, wanted: str, *, allowed: bool) -> str:
    """Why the version that runs is not to be written over, "" where it may be."""
    if allowed or is_older(reported, wanted) or is_older(wanted, reported) is False:
        return ""
    what = "is newer than" if is_older(wanted, reported) else "cannot be ordered against"
    return f"{reported} {what} the baseline {wanted}: add it to `allowed`, or set `downgrade: true`"


def is_bios_name(component: str) -> bool:
    """Whether a component is called like the machine's BIOS ("BIOS", "UEFI", "HostBIOS_0"), not a GPU's."""
    return _BIOS.search(component) is not None


def is_adapter_name(component: str) -> bool:
    """Whether a component is called like an InfiniBand adapter."""
    return _ADAPTER.search(component) is not None
