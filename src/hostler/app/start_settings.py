"""How a whole Hostler is started: what the commands `up` and `serve` hand to the composition root."""

from msgspec import Struct


class UpSettings(Struct, frozen=True):
    """A Hostler with a simulated cluster on this machine.

    `port` 0 takes a free one, `scale` is how many times faster than the clock the simulated world lives, `data` ""
    keeps nothing, `faults_per_hour` counts real hours over the whole fleet. `kubernetes` is the kubeconfig of the admin
    of a cluster whose nodes kwok plays; "" is a cluster in memory. `real_agents`: the nodes' agents have only the
    abilities of real ones. `adopted`: the pools' nodes serve from the start, and only spares are brought up.
    """

    port: int = 8440
    nodes: int = 64
    scale: float = 1440.0
    data: str = ""
    seed: int = 1
    faults_per_hour: float = 60.0
    kubernetes: str = ""
    real_agents: bool = False
    adopted: bool = False


class ServeSettings(Struct, frozen=True):
    """One controller of a cell and its API. TLS needs both files; `config` are documents activated at the start.

    `agents` is the host and port of a listener for agents alone. `host_names` are the names under which a proxy or DNS
    shows it; with one of them, requests under any other name are refused. `journal` "" is a file in `data`, which no
    other process may serve then. Controllers that name the same journal, a file or a postgresql:// URL, stand by each
    other: `advertise` is where the others reach this one, `name` what it is called ("": host and port), `lease_s` how
    long the others wait for one that has fallen silent. `archive` is the folder for what has had its time in the
    journal; "": all of it stays there. `slurm` are clusters, each "NAME" or "NAME=FILE" (`drivers/slurm/settings`);
    `clusters` are Kubernetes', each "NAME=KUBECONFIG[@CONTEXT]". `boot` is the host and port of the boot listener,
    None for none; `boot_images` the folder of what is booted; `boot_key` names the secret with the key of boots, ""
    for the data directory's own; `boot_signers` the file of keys that sign the list of images, "" for no list;
    `boot_media` the host and port where boot media are served by TLS, None for none.
    `traces` is the address of an OpenTelemetry collector, "" for none.
    """

    data: str
    host: str = "127.0.0.1"
    port: int = 8440
    tls_cert: str = ""
    tls_key: str = ""
    insecure_plain_http: bool = False
    agents: tuple[str, int] | None = None
    host_names: tuple[str, ...] = ()
    config: tuple[str, ...] = ()
    journal: str = ""
    name: str = ""
    advertise: str = ""
    lease_s: float = 5.0
    archive: str = ""
    peers_ca: str = ""
    slurm: tuple[str, ...] = ()
    clusters: tuple[str, ...] = ()
    boot: tuple[str, int] | None = None
    boot_images: str = ""
    boot_key: str = ""
    boot_signers: str = ""
    boot_media: tuple[str, int] | None = None
    traces: str = ""
