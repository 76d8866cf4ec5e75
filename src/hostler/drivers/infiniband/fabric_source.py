"""Discovery of a registered network by infiniband-diags on the controller's own host."""

from msgspec import Struct

from hostler.core.fabric.discovery import Discovery
from hostler.core.state.fabrics import Fabric
from hostler.drivers.infiniband.diagnostics import Diagnostics, discover


class InfinibandSource(Struct, frozen=True):
    """A `FabricSource`. `directory`: where the tools are, "" for the PATH; `environment` is added to theirs."""

    directory: str = ""
    environment: dict[str, str] = {}

    async def discover(self, fabric: Fabric) -> Discovery:
        """One look through the adapter that the network's registration names."""
        how = fabric.source
        return await discover(Diagnostics(self.directory, how.adapter, how.port, how.timeout_s), self.environment)
