"""The offer that lets one node's kubelet into a cluster for the first time, given to that node's agent alone."""

from datetime import datetime

from msgspec import Struct


class JoinOffer(Struct, frozen=True):
    """The API server, by what it is recognised, and a token that lets this one node in, once, until `expires`.

    `name` is how the node is to call itself there. `ca` is PEM; `ca_hash` ("sha256:…", of the authority's public key)
    is the short form that kubeadm takes. `taint` ("KEY=VALUE:EFFECT") is our cordon: a kubelet that registers its Node
    with it is shut from its first moment. Its token is shown by no representation of it.
    """

    cluster: str
    name: str
    server: str
    ca: str
    ca_hash: str
    token: str
    expires: datetime
    taint: str = ""

    def __repr__(self) -> str:
        return f"JoinOffer(cluster={self.cluster!r}, name={self.name!r}, expires={self.expires!r})"
