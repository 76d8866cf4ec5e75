"""Secrets of one boot, made from the site's boot key: none is stored, and each opens one boot alone. Pure."""

import hashlib
import hmac

DOOR, SEED, MEDIUM = "boot", "cloud-init", "medium"
"""Purposes: what a BMC is given for its machine, what the boot script gives to the image, and what is in the address
of a boot medium, which a BMC shows to all who may read it."""

LENGTH = 32
"""Hexadecimal digits: 128 bits."""


def secret_of(key: bytes, node: str, plan: str, purpose: str) -> str:
    """The secret of the boot that this plan powers on; another plan's boot has another."""
    return hmac.new(key, f"{purpose}\0{node}\0{plan}".encode(), hashlib.sha256).hexdigest()[:LENGTH]


def is_secret_of(shown: str, key: bytes, node: str, plan: str, purpose: str) -> bool:
    """Whether this secret was shown; the time it takes tells nothing."""
    return bool(plan) and hmac.compare_digest(shown.encode(), secret_of(key, node, plan, purpose).encode())
