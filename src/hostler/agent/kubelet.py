"""The kubelet of this machine, as far as a cluster is joined and left with it: its kubeconfigs, and whether it runs.

`bootstrap-kubelet.conf` lets it ask for a certificate, `kubelet.conf` is what it then goes by. One that points to a
cluster that was left is put aside, so that the kubelet cannot register the node there anew.
"""

import os
from pathlib import Path

from msgspec import Struct

from hostler.core.state.bootstrap_kubeconfig import BOOTSTRAP_FILE

FOLDER = Path(BOOTSTRAP_FILE).parent
BOOTSTRAP, OWN, ASIDE = Path(BOOTSTRAP_FILE).name, "kubelet.conf", "kubelet.conf.left"


class KubeletJoinOffer(Struct, frozen=True):
    """Join offer for this node's kubelet, as the controller gives it: `ca` is PEM.

    Its token is in no representation.
    """

    cluster: str
    name: str
    server: str
    ca: str
    token: str

    def __repr__(self) -> str:
        return f"JoinOffer(cluster={self.cluster!r}, name={self.name!r})"


def invite(folder: Path, kubeconfig: str) -> bool:
    """Lay the bootstrap kubeconfig down for the kubelet; False where that very one lies there. Raises OSError."""
    place = folder / BOOTSTRAP
    if place.exists() and place.read_text(encoding="utf-8") == kubeconfig:
        return False
    folder.mkdir(parents=True, exist_ok=True)
    _put_aside(folder)
    unfinished = folder / f".{BOOTSTRAP}.part"
    unfinished.unlink(missing_ok=True)
    with os.fdopen(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(kubeconfig)
        file.flush()
        os.fsync(file.fileno())
    unfinished.rename(place)
    return True


def forget(folder: Path) -> None:
    """Take both kubeconfigs from the kubelet: it knows no cluster any more. Raises OSError."""
    (folder / BOOTSTRAP).unlink(missing_ok=True)
    _put_aside(folder)


def _put_aside(folder: Path) -> None:
    if (folder / OWN).exists():
        (folder / OWN).rename(folder / ASIDE)
