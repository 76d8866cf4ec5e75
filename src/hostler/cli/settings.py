"""How a whole Hostler is started: what the commands `up` and `serve` hand to the composition root."""

from msgspec import Struct


class UpSettings(Struct, frozen=True):
    """A Hostler with a simulated cluster on this machine.

    `port` 0 takes a free one, `scale` is how many times faster than the clock the simulated world lives, `data` ""
    keeps nothing, `faults_per_hour` counts real hours over the whole fleet.
    """

    port: int = 8440
    nodes: int = 64
    scale: float = 1440.0
    data: str = ""
    seed: int = 1
    faults_per_hour: float = 60.0


class ServeSettings(Struct, frozen=True):
    """One cell's controller and API. TLS needs both files; `config` are documents activated at the first start."""

    data: str
    host: str = "127.0.0.1"
    port: int = 8440
    tls_cert: str = ""
    tls_key: str = ""
    insecure_plain_http: bool = False
    config: tuple[str, ...] = ()
