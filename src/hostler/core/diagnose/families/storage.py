"""Disks, NVMe, software RAID and file systems: what block/, drivers/nvme, drivers/md and fs/ print."""

import re

from msgspec.structs import replace

from hostler.core.diagnose.decoded import Decoded
from hostler.core.diagnose.family import Family, MessageRow
from hostler.core.diagnose.line import PCI

_FAILED, _READ_ONLY, _ERROR = "storage.failed", "storage.read_only", "storage.io_error"
_NVME = r"nvme (?P<device>nvme\d{1,4}(?:c\d{1,4})?): "
_BLOCK = r"(?P<device>[a-z][\w.-]{0,31})"
_FS = r"(?:EXT[234]|XFS|BTRFS|FAT|F2FS|JBD2|GFS2|NILFS|REISERFS|UBIFS|bcachefs)[\w-]{0,4}"
_ON = (
    r"(?: (?:error|warning|critical|info|notice))? ?"
    r"(?:\((?:device )?(?P<device>[\w./-]{1,64})(?:: state \w{1,12})?\)|\[(?P<device2>[\w-]{1,32})\])?"
)


_REMOVABLE = re.compile(r"(?:sr|fd)\d{1,3}", re.ASCII)


def _removable(one: Decoded) -> Decoded:
    """Drives whose medium may be out, a BMC's virtual ones above all: reading an empty one fails on sound servers."""
    if not _REMOVABLE.fullmatch(str(one.facts.get("device", ""))):
        return one
    return replace(one, condition="kernel_log.informational", ambiguous="a drive without a medium says the same")


def _turned(trigger: str, pattern: str) -> MessageRow:
    text = "a file system went read-only after an error"
    return MessageRow("filesystem_read_only", trigger, pattern, text, "fatal", _READ_ONLY)


ROWS = (
    _turned(
        "ead-only",
        rf"(?:{_FS}{_ON}:? (?:error: )?)?[Rr]emounting (?:filesystem|fs|file system) read-only",
    ),
    _turned(
        "read-only",
        rf"{_FS}{_ON}:? (?:error: )?(?:Filesystem|File system|filesystem|fs) (?:has been |was )?"
        r"(?:set|remounted|forced|turned) read-only",
    ),
    _turned("forced readonly", rf"BTRFS{_ON}:? ?[^\n]{{0,200}}?forced readonly"),
    MessageRow(
        "filesystem_shutdown",
        "hut",
        rf"XFS{_ON}:? [^\n]{{0,200}}?(?:Shutting down filesystem|"
        r"[Ff]ilesystem has been shut down|User initiated shutdown received)",
        "a file system shut itself down after an error",
        "fatal",
        _READ_ONLY,
        detail=lambda one: None if "User initiated" in one.line else one,
    ),
    MessageRow(
        "superblock_write_error",
        "superblock",
        rf"(?:{_FS}{_ON}:? )?(?:I/O error while writing superblock|previous I/O error to superblock detected|"
        r"(?:Error -?\d{1,4} detected when updating journal superblock)|"
        r"I/O error when updating journal superblock for (?P<device3>[\w/-]{1,64})|"
        r"lost page write due to I/O error on superblock|metadata I/O error[^\n]{0,80}xfs_sb)",
        "a file system could not write its superblock",
        "fatal",
        _FAILED,
    ),
    MessageRow(
        "filesystem_error",
        "EXT",
        r"EXT[234]-fs error (?:\((?:device )?(?P<device>[\w./-]{1,64})\))",
        "a file system found an error in its own structures",
        "warning",
        _ERROR,
    ),
    MessageRow(
        "filesystem_error",
        "ext4_end_bio",
        r"EXT4-fs warning \(device (?P<device>[\w./-]{1,64})\): ext4_end_bio:\d{1,6}: I/O error",
        "a file system could not write a file's data",
        "warning",
        _ERROR,
    ),
    MessageRow(
        "filesystem_error",
        "XFS",
        r"XFS \((?P<device>[\w./-]{1,64})\): (?:metadata I/O error|Metadata (?:corruption|CRC error) detected|"
        r"log I/O error|Corruption (?:warning|detected)|xfs_\w{1,60}: \w{1,20} I/O error|Internal error)",
        "a file system found an error in its own structures",
        "warning",
        _ERROR,
    ),
    MessageRow(
        "filesystem_error",
        "BTRFS",
        r"BTRFS(?:: error| error| critical) \(device (?P<device>[\w./-]{1,64})[^)]{0,80}\):? ?"
        r"(?!.{0,200}forced readonly)",
        "a file system found an error in its own structures",
        "warning",
        _ERROR,
    ),
    MessageRow(
        "filesystem_error",
        "borting journal",
        r"(?:JBD2: |EXT[34]-fs[^:]{0,60}: )?(?:Detected aborted journal|Aborting journal on device "
        r"(?P<device>[\w/-]{1,64}))",
        "a file system gave up its journal",
        "warning",
        _ERROR,
    ),
    MessageRow(
        "buffer_io_error",
        "Buffer I/O error",
        rf"Buffer I/O error on (?:dev|device) {_BLOCK}"
        r"(?:, logical block (?P<sector>\d{1,20}))?",
        "a buffered read or write failed",
        "warning",
        _ERROR,
        detail=_removable,
    ),
    MessageRow(
        "block_io_error",
        " error, dev ",
        r"(?:blk_update_request: |print_req_error: |end_request: )?"
        r"(?P<error>I/O|critical medium|critical target|critical space allocation|critical nexus|timeout|protection|"
        r"recoverable transport|device resource|device offline|reservation conflict|"
        rf"zone open resource|zone active resource|media|integrity) error, dev {_BLOCK}"
        r"(?:, sector (?P<sector>\d{1,20}))?",
        "a request to a block device failed",
        "warning",
        _ERROR,
        detail=_removable,
    ),
    MessageRow(
        "nvme_command_error",
        " @ LBA ",
        r"(?P<device>nvme\w{1,24}): (?:I/O Cmd|\w[\w ]{0,24})\(0x[0-9a-f]{1,2}\) @ LBA (?P<sector>\d{1,20}), "
        r"\d{1,10} blocks, (?P<error>[\w /-]{1,60}) \(sct 0x[0-9a-f]{1,2} / sc 0x[0-9a-f]{1,3}\)",
        "the NVMe drive failed a command",
        "warning",
        _ERROR,
    ),
    MessageRow(
        "disk_offline",
        "rejecting I/O to offline device",
        r"(?:sd [\d:]{5,32}: )?(?:\[(?P<device>\w{1,32})\] )?rejecting I/O to offline device",
        "a disk was taken offline and every request to it fails",
        "warning",
        _ERROR,
        ambiguous="a BMC's virtual drive that is taken away says the same",
    ),
    MessageRow(
        "beyond_end_of_device",
        "beyond end of device",
        r"(?:(?P<process>[^\n]{1,64}?): )?attempt to access beyond end of device",
        "something asked for blocks that the device does not have",
        "warning",
        _ERROR,
        ambiguous="a damaged file system, a shrunken device and a program's mistake all look like this",
    ),
    MessageRow(
        "nvme_timeout",
        "timeout",
        rf"(?:{_NVME}|nvme {PCI}: )(?:I/O(?: tag)? \d{{1,9}}[^\n]{{0,100}} QID \d{{1,6}} timeout|"
        r"queue \d{1,6}: timeout request|Abort timeout)",
        "the NVMe drive did not answer a command in time",
        "warning",
        _ERROR,
    ),
    MessageRow(
        "nvme_controller_down",
        "controller is down",
        rf"{_NVME}controller is down; will reset: CSTS=(?P<csts>0x[0-9a-f]{{1,8}})",
        "the NVMe controller was found down",
        "warning",
        _ERROR,
    ),
    MessageRow(
        "nvme_not_ready",
        "evice not ready",
        rf"{_NVME}Device not ready; aborting (?:reset|initiali[sz]ation|shutdown)",
        "the NVMe controller did not become ready",
        "warning",
        _ERROR,
    ),
    MessageRow(
        "nvme_device_disabled",
        "isabling device after reset failure",
        rf"{_NVME}Disabling device after reset failure: (?P<status>-?\d{{1,6}})",
        "the NVMe drive could not be reset and was taken out of use",
        "fatal",
        _FAILED,
    ),
    MessageRow(
        "nvme_device_disabled",
        "emoving after probe failure",
        rf"{_NVME}Removing after probe failure(?: status: (?P<status>-?\d{{1,6}}))?",
        "the NVMe drive could not be started and was taken out of use",
        "fatal",
        _FAILED,
    ),
    MessageRow(
        "nvme_path_failure",
        "no available path",
        r"block (?P<device>nvme\w{1,24}): no available path - failing I/O",
        "no path to the NVMe name space is left",
        "fatal",
        _FAILED,
    ),
    MessageRow(
        "nvme_path_lost",
        "no usable path",
        r"block (?P<device>nvme\w{1,24}): no usable path - requeu?ing I/O",
        "no path to the NVMe name space is usable at the moment",
        "warning",
        _ERROR,
    ),
    MessageRow(
        "nvme_critical_warning",
        "critical warning",
        rf"{_NVME}(?:[^\n]{{0,40}})?critical warning",
        "the NVMe drive reports a critical warning",
        "warning",
        _ERROR,
    ),
    MessageRow(
        "raid_array_failure",
        "Disk failure on",
        r"md/raid\d{0,2}:?(?:md(?P<array>[\w-]{1,32}))?: ?Disk failure on (?P<device>[\w./-]{1,64})",
        "a disk of a software RAID array failed",
        "fatal",
        _FAILED,
    ),
    MessageRow(
        "raid_array_failure",
        "md/raid",
        r"md/raid\d{0,2}:?(?:md(?P<array>[\w-]{1,32}))?: ?(?:Cannot continue operation|"
        r"not enough operational (?:devices|mirrors)|failed to run raid set|too many failed|"
        r"device \w{1,32} failed|[^\n]{0,60}unrecoverable I/O read error)",
        "a software RAID array cannot go on",
        "fatal",
        _FAILED,
    ),
)

STORAGE = Family("disk", "disk", ROWS)
