"""Operations with their arguments: one struct per kind, the same in plans, in records and on the wire.

What is known of a kind besides (who performs it, what must hold first) stands in `core.tables.operations`.
"""

from typing import Literal, get_args

import msgspec
from msgspec import Struct

from hostler.core.state.drills import DrillFault
from hostler.core.state.firmware_updates import DeviceTool
from hostler.core.state.gate_expectation import Expected
from hostler.core.state.pass_rules import PassRules


def _stored(name: str) -> str:
    """The kind of a class name: `RunChecks` is "run_checks"."""
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name).lstrip("_")


class OperationAct(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, tag_field="kind", tag=_stored):
    """Base of all kinds. An argument that a kind does not have is refused."""

    @property
    def kind(self) -> str:
        """The kind as records and people name it."""
        return str(self.__struct_config__.tag)


def kind_of(act: type[OperationAct]) -> str:
    """The kind that a struct is of."""
    return str(act.__struct_config__.tag)


# the BMC


class SetBootNetwork(OperationAct, frozen=True):
    """Boots over the network the next time; `url` is an HTTP boot's address or a medium's, which no record holds.

    With "medium" it boots from a virtual drive.
    """

    target: Literal["pxe", "uefi_http", "medium"] = "pxe"
    url: str = ""


class EjectBootMedium(OperationAct, frozen=True):
    """Takes boot media out of the machine's virtual drives: those whose addresses begin with `images`, no others."""

    images: str


class PowerOn(OperationAct, frozen=True):
    """Switches the machine on."""


class SwitchOff(OperationAct, frozen=True, tag="power_off"):
    """Switches the machine off."""


class LocateOn(OperationAct, frozen=True):
    """Lights the locate LED."""


class LocateOff(OperationAct, frozen=True):
    """Puts the locate LED out."""


class CollectInventory(OperationAct, frozen=True):
    """Reads parts and versions."""


class WriteFirmware(OperationAct, frozen=True, tag="update_firmware"):
    """Writes a component's image. `version` runs once it is active.

    `good` are all versions that need no writing, () where nobody has said so; of an intermediate version `at_least`
    is enough. `activates` is the act that makes it run. `needs`: component → version that must run before. `push`: the
    image is sent, not fetched. `targets` are paths on the BMC, () for the component's own.
    """

    component: str
    version: str
    image: str = ""
    sha256: str = ""
    good: tuple[str, ...] = ()
    at_least: str = ""
    activates: str = ""
    needs: dict[str, str] = {}
    downgrade: bool = False
    push: bool = False
    targets: tuple[str, ...] = ()


class VerifyFirmware(OperationAct, frozen=True):
    """Reads versions until each component runs one of those wanted; without any it only reads."""

    wanted: dict[str, tuple[str, ...]] = {}


class FetchSystemImage(OperationAct, frozen=True):
    """Has a switch tray's own system fetch an image; `good` are the versions that need none."""

    version: str
    image: str
    sha256: str
    good: tuple[str, ...]


class InstallSystemImage(OperationAct, frozen=True):
    """Installs a fetched image on a switch tray's own system, which restarts into it.

    `activates` is the power cycle that follows, "" for none; before one an image that was not booted is installed.
    """

    version: str
    image: str
    good: tuple[str, ...]
    downgrade: bool = False
    activates: str = ""


class WriteBiosSettings(OperationAct, frozen=True):
    """Has the machine's BIOS take these attributes at its next start; no other is touched."""

    wanted: dict[str, str] = {}


class VerifyBiosSettings(OperationAct, frozen=True):
    """Reads BIOS attributes until each has the value that is wanted."""

    wanted: dict[str, str] = {}


class CycleMains(OperationAct, frozen=True, tag="ac_cycle"):
    """Takes all power off the machine and back, its BMC's too."""


class CycleOutlets(OperationAct, frozen=True, tag="outlet_cycle"):
    """The same by the outlets of the rack's PDUs that feed the machine."""


class PullCords(OperationAct, frozen=True, tag="unplug"):
    """Waits until a person has taken all power off the machine: what was written to these components runs then.

    Nothing is sent.
    """

    components: tuple[str, ...] = ()


UNPLUG = "unplug"
"""The kind of operation that waits for the cords of a machine."""


class ResetBmc(OperationAct, frozen=True):
    """Restarts the BMC; where components are named, only if one of them is not listed."""

    unless_listed: tuple[str, ...] = ()


class RenewBmcLogin(OperationAct, frozen=True):
    """Gives the BMC a password of its own. `anew`: a person says that wrong passwords count from none again."""

    anew: bool = False


class WipeBmcLogin(OperationAct, frozen=True):
    """Gives the BMC its vendor's password back, has ours refused, and erases what is kept of the login."""


class RenewDpuLogin(OperationAct, frozen=True):
    """Gives the BMC of a DPU at this address a password of its own, where it shows the serial number of one of `cards`.

    `certificate` is the one that it is known by, "" for none yet; `anew` as of the node's own BMC.
    """

    bmc: str
    cards: tuple[str, ...]
    certificate: str = ""
    anew: bool = False


class WipeDpuLogin(OperationAct, frozen=True):
    """Gives the BMC of a DPU its vendor's password back, as of the node's own BMC."""

    bmc: str
    cards: tuple[str, ...]
    certificate: str = ""


class RenewBmcCertificate(OperationAct, frozen=True):
    """Has the site's authority issue the BMC a certificate, good for so long, and proves it."""

    valid_s: float = 31_536_000.0


# the machine's provisioner


class InspectMachine(OperationAct, frozen=True):
    """Has the provisioner read what the machine consists of."""


class DeployImage(OperationAct, frozen=True):
    """Has the provisioner write an image, known by its checksum, and boot it; `configdrive` is an address or ""."""

    image: str
    checksum: str
    configdrive: str = ""


class CleanMachine(OperationAct, frozen=True):
    """Has the provisioner clean the machine by these steps ("INTERFACE.STEP"), in their order."""

    steps: tuple[str, ...]


# the provider that owns the machine


class ReplaceMachine(OperationAct, frozen=True):
    """Has the provider give another instance for this one, which it takes back."""


# the node's agent


class CollectEvidence(OperationAct, frozen=True):
    """Reads what tells of a fault, before it is gone.

    `keep`: it is put together with what is recorded, and kept as a bundle. `agent`: the node's agent is asked too.
    """

    keep: bool = False
    agent: bool = True


class BugReport(OperationAct, frozen=True):
    """Has NVIDIA's own report made within `timeout_s`; from `offset` on what was made is read on."""

    timeout_s: float = 180.0
    offset: int = 0


class DiscoverFabric(OperationAct, frozen=True):
    """Looks at the node's network by a tool; `adapter` and `port` are those of infiniband-diags, "" and 0 for any."""

    tool: str = "ibnetdiscover"
    adapter: str = ""
    port: int = 0
    timeout_s: float = 300.0


class ResetGpus(OperationAct, frozen=True, tag="gpu_reset"):
    """Resets GPUs: `gpus` by PCI address or slot, () for all.

    `clients` are services that hold them, `fabric` the fabric manager's, "" for the agent's own choice; `links` is how
    many NVLinks each GPU must have afterwards, 0 for as many as before.
    """

    gpus: tuple[str, ...] = ()
    clients: tuple[str, ...] = ()
    fabric: str = ""
    links: int = 0


class RestartNode(OperationAct, frozen=True, tag="reboot"):
    """Restarts the node from inside."""


class BmcColdReset(OperationAct, frozen=True):
    """Restarts the BMC from inside the node."""


class RunChecks(OperationAct, frozen=True):
    """Runs a profile of checks. `expects` is what a gate must see, None where the order is to be completed yet.

    `rules` are what the node's SKU wants of the profile as its plan was laid down, None for the profile's own.
    """

    profile: str = "gate"
    expects: Expected | None = None
    rules: PassRules | None = None


class DriveToErase(Struct, frozen=True):
    """A drive by its serial number; `slot` and `model` are for people."""

    slot: str
    serial: str
    model: str = ""


class Sanitise(OperationAct, frozen=True):
    """Erases what a tenant may have left: these drives and no other, but none whose slot is in `keep`.

    `tpm`: the machine's TPM is cleared too. `accounts`: names of BMC accounts that stay, None where none is looked at.
    """

    drives: tuple[DriveToErase, ...] = ()
    keep: tuple[str, ...] = ()
    tpm: bool = False
    accounts: tuple[str, ...] | None = None


class WriteDeviceFirmware(OperationAct, frozen=True):
    """Has the agent write an image to its parts of these `models`, in these `slots` where any are named.

    `version`, `good`, `at_least` and `downgrade` are as those of `WriteFirmware`, and hold for each part by itself.
    `spares_infiniband`: an adapter with a port that is InfiniBand is not written.
    """

    component: str
    tool: DeviceTool
    models: tuple[str, ...]
    version: str
    image: str
    sha256: str
    good: tuple[str, ...] = ()
    at_least: str = ""
    slots: tuple[str, ...] = ()
    downgrade: bool = False
    spares_infiniband: bool = False


class DeviceBaseline(Struct, frozen=True):
    """A component that an agent writes: its parts, and the versions that satisfy each of them."""

    tool: DeviceTool
    models: tuple[str, ...]
    good: tuple[str, ...]
    slots: tuple[str, ...] = ()


class VerifyDeviceFirmware(OperationAct, frozen=True):
    """Has the agent read its inventory: every part of a component runs one of the versions that are wanted."""

    wanted: dict[str, DeviceBaseline]


class StartKubelet(OperationAct, frozen=True):
    """Has the kubelet join by what its agent fetches for it; no order carries that."""


class StopKubelet(OperationAct, frozen=True):
    """Stops the kubelet and takes its credentials away."""


class ArmDrill(OperationAct, frozen=True):
    """Makes the token of a drill; only its SHA-256 is told (fact "proof")."""

    drill: str


class InjectFault(OperationAct, frozen=True):
    """Has the node show the fault of a drill, by the token that it was armed with; `pci` is the address of a GPU.

    `silent_s`: for so long the agent is not heard afterwards.
    """

    drill: str
    fault: DrillFault
    pci: str = ""
    silent_s: float = 0.0


# the scheduler


class CordonNode(OperationAct, frozen=True, tag="cordon"):
    """Keeps new work away."""


class UncordonNode(OperationAct, frozen=True, tag="uncordon"):
    """Takes Hostler's own cordon off."""


class Evict(OperationAct, frozen=True):
    """Ends these workloads and no other."""

    workloads: tuple[str, ...] = ()


class JoinCluster(OperationAct, frozen=True):
    """Makes the node a member; `token_ttl_s` is how long its kubelet's token lasts, 0 for none."""

    token_ttl_s: float = 0.0


class ConfirmJoin(OperationAct, frozen=True):
    """Waits until the kubelet is ready, and withdraws its token; `token_ttl_s` as `JoinCluster` had it."""

    token_ttl_s: float = 0.0


class LeaveCluster(OperationAct, frozen=True):
    """Takes the node out of its cluster."""


class IdleCheck(OperationAct, frozen=True):
    """Checks an idle node by a Job of `image`."""

    profile: str = "idle"
    image: str = ""


class CordonUninvited(OperationAct, frozen=True):
    """Cordons a node in a cluster that it has left, or that it entered at its boot and is not delivered in."""

    cluster: str = ""


class DeleteUninvited(OperationAct, frozen=True):
    """Deletes a node's entry in a cluster that it has left."""

    cluster: str = ""


class IssueJoinToken(OperationAct, frozen=True):
    """Lists the node, cordoned, in the cluster that it enters at its boot, and issues a token for its kubelet."""

    cluster: str = ""
    token_ttl_s: float = 0.0


# a tool in the node's network


class ResetPort(OperationAct, frozen=True):
    """Resets the switch's port `z` ("leaf-1:9") of the cable to the node's own port `a`; "" where none is known."""

    fabric: str = ""
    a: str = ""
    z: str = ""


# nothing is sent: live state shows it


class DrainNode(OperationAct, frozen=True, tag="drain"):
    """Waits until no customer's work is left."""


class VerifyInventory(OperationAct, frozen=True):
    """Compares the parts of this boot with the SKU; `convicts`: a missing part convicts, else it is waited for."""

    convicts: bool = False


class VerifyCabling(OperationAct, frozen=True):
    """Compares the node's ports with a network's design, which calls it `device`."""

    fabric: str = ""
    device: str = ""


class VerifyHardware(OperationAct, frozen=True):
    """Compares links, settings and places with the SKU's hardware manifest."""


class WaitBoot(OperationAct, frozen=True):
    """Waits for another boot id."""


class WaitAgent(OperationAct, frozen=True):
    """Waits for the agent."""


class WaitBmc(OperationAct, frozen=True):
    """Waits for the BMC."""


class RetiredOperation(OperationAct, frozen=True, tag=""):
    """An operation as an older version recorded it that this one does not know: it can be told, and never performed."""

    said: str = ""
    args: dict[str, str] = {}

    @property
    def kind(self) -> str:
        """The kind as it was recorded."""
        return self.said


AnyAct = (
    SetBootNetwork
    | EjectBootMedium
    | PowerOn
    | SwitchOff
    | LocateOn
    | LocateOff
    | CollectInventory
    | WriteFirmware
    | VerifyFirmware
    | FetchSystemImage
    | InstallSystemImage
    | WriteBiosSettings
    | VerifyBiosSettings
    | CycleMains
    | CycleOutlets
    | PullCords
    | ResetBmc
    | RenewBmcLogin
    | WipeBmcLogin
    | RenewDpuLogin
    | WipeDpuLogin
    | RenewBmcCertificate
    | InspectMachine
    | DeployImage
    | CleanMachine
    | ReplaceMachine
    | CollectEvidence
    | BugReport
    | DiscoverFabric
    | ResetGpus
    | RestartNode
    | BmcColdReset
    | RunChecks
    | Sanitise
    | WriteDeviceFirmware
    | VerifyDeviceFirmware
    | StartKubelet
    | StopKubelet
    | ArmDrill
    | InjectFault
    | CordonNode
    | UncordonNode
    | Evict
    | JoinCluster
    | ConfirmJoin
    | LeaveCluster
    | IdleCheck
    | CordonUninvited
    | DeleteUninvited
    | IssueJoinToken
    | ResetPort
    | DrainNode
    | VerifyInventory
    | VerifyCabling
    | VerifyHardware
    | WaitBoot
    | WaitAgent
    | WaitBmc
    | RetiredOperation
)
"""Every kind."""

ACTS: dict[str, type[OperationAct]] = {kind_of(act): act for act in get_args(AnyAct) if act is not RetiredOperation}
"""Kind → its struct."""
FIRMWARE_LOOKS = (kind_of(VerifyFirmware), kind_of(VerifyDeviceFirmware))
"""Kinds that read which firmware runs, a BMC's and an agent's."""


def plain(kind: str) -> AnyAct:
    """The operation of a kind whose arguments may be left out. Raises ValidationError for any other."""
    act: AnyAct = msgspec.convert({"kind": kind}, AnyAct)
    return act
