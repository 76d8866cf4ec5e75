"""Network adapters (mlx5 above all), links, NFS, and GPUDirect's peer memory."""

from msgspec.structs import replace

from hostler.core.diagnose.family import DEVICE, Family, MessageRow

_WHERE = rf"(?:mlx5_core(?: {DEVICE})?:? ?(?:[\w.-]{{1,32}}(?: \(\w{{1,20}}\))?: )?)?"
_SAYS = r"(?:[a-z]\w{1,60}(?::\d{1,6})?(?::?\(pid \d{1,10}\))?: ?)?"
_MLX5 = _WHERE + _SAYS
_DOWN, _WARNS = "network.nic_down", "network.nic_warning"
_EVENT = r"Port module event(?:\[\w{1,12}\])?(?::| -)? "
_MODULE = _EVENT + r"module (?P<port>\d{1,4})[:,] "


def _dead(event: str, trigger: str, pattern: str, text: str) -> MessageRow:
    """The adapter's control plane is gone: whatever runs over it has lost it already."""
    return MessageRow(event, trigger, pattern, text, "fatal", _DOWN, "REPLACE_VM", facts={"fatal": True})


def _warns(event: str, trigger: str, pattern: str, text: str) -> MessageRow:
    """The driver says so and goes on, or recovers by itself."""
    return MessageRow(event, trigger, pattern, text, "warning", _WARNS, "NONE", facts={"fatal": False})


def _accuses_nobody(row: MessageRow, condition: str, ambiguous: str) -> MessageRow:
    """Healthy machines have these words too."""
    return replace(row, condition=condition, ambiguous=ambiguous)


ADAPTER_ROWS = (
    _dead(
        "cmd_exec_timeout",
        "timeout. Will cause a leak of a command resource",
        _MLX5 + r"(?:cmd\[\d{1,4}\]: )?(?:(?P<command>[A-Z_0-9]{1,60})\(0x[0-9a-f]{1,8}\) )?(?:Async, )?timeout\. "
        r"Will cause a leak of a command resource",
        "the adapter's firmware did not answer a command",
    ),
    _dead(
        "health_poll_failed",
        "health compromised",
        _MLX5 + r"(?:Fatal error \d{1,4} detected\. )?device's health compromised - reached miss count",
        "the adapter's firmware has no heartbeat",
    ),
    _dead(
        "health_fatal_error",
        "Fatal error ",
        _MLX5 + r"Fatal error (?P<status>\d{1,4}) detected",
        "the adapter reports a fatal error",
    ),
    _dead(
        "unrecoverable_err",
        "unrecoverable hardware error",
        _MLX5 + r"[^\n]{0,120}?unrecoverable hardware error",
        "the adapter reports a hardware error that it cannot survive",
    ),
    _dead(
        "health_recovery_failed",
        "health recovery f",
        _MLX5 + r"health recovery f(?:ailed|low aborted)",
        "the adapter could not be brought back after an error",
    ),
    _warns(
        "firmware_error",
        "synd",
        _MLX5 + r"synd(?:rome)? (?P<syndrome>0x[0-9a-f]{1,4}): (?P<reason>firmware internal error|irisc not responding|"
        r"firmware CRC error|ICM fetch PCI error|ICM fetch PCI data poisoned error|HW fatal error|"
        r"async EQ buffer overrun|EQ error|Invalid EQ referenced|FFSER error|High temperature)",
        "the adapter's firmware reports an error",
    ),
    _warns(
        "netdev_watchdog",
        "NETDEV WATCHDOG",
        rf"(?:[\w-]{{1,32}} {DEVICE} (?P<device>[\w.-]{{1,32}})(?: \(\w{{1,20}}\))?: )?NETDEV WATCHDOG: "
        r"(?:(?P<device2>[\w.@-]{1,32})(?: \((?P<driver>[\w-]{1,32})\))?: |CPU: (?P<cpu>\d{1,6}): )?"
        r"transmit queue(?: (?P<queue>\d{1,6}))? timed out",
        "a transmit queue stood still for too long",
    ),
    _warns(
        "mlx5_tx_timeout_detected",
        "TX timeout",
        _MLX5 + r"(?:[\w.-]{1,32}: )?TX timeout (?:detected|on queue)",
        "a transmit queue stood still for too long",
    ),
    _warns(
        "mlx5_rx_timeout_detected",
        "RX timeout",
        _MLX5 + r"(?:[\w.-]{1,32}: )?RX timeout (?:detected|on (?:channel|queue))",
        "a receive queue stood still for too long",
    ),
    _warns(
        "pci_power_insufficient",
        "ower on the PCIe slot",
        _MLX5 + r"(?:[^\n]{0,80}?Detected insufficient power on the PCIe slot"
        r"(?: \((?P<power>\d{1,4})W\)| \(\d{0,4}$|(?! \())|"
        r"Port module event\[error\]: module (?P<port>\d{1,4}), Cable error, One or more network ports "
        r"have been powered down due to insufficient/unadvertised power on the PCIe slot)",
        "the slot gives the adapter less power than it asks for",
    ),
    _warns(
        "port_module_high_temp",
        "High Temperature",
        _MLX5 + _EVENT + r"(?:module (?P<port>\d{1,4})[:,] )?(?:Cable error, )?(?:\w{1,16} )?High Temperature",
        "a transceiver is hot",
    ),
    _accuses_nobody(
        _warns(
            "module_unplugged",
            "nplugged",
            _MLX5 + rf"(?:{_MODULE})?Cable unplugged",
            "a cable or transceiver was pulled out",
        ),
        "network.link_event",
        "an empty cage says the same when the driver starts",
    ),
    _warns(
        "port_module_error",
        "Cable error",
        _MLX5 + _MODULE + r"Cable error, (?P<reason>Power budget exceeded|Long Range for non MLNX cable|Bus stuck|"
        r"No EEPROM|Enforce part number list|Unknown identifier|Unsupported (?:Cable|cable)|Bad or shorted cable)",
        "a cable or transceiver cannot be used",
    ),
    _accuses_nobody(
        _warns(
            "access_reg_failed",
            "ACCESS_REG",
            _MLX5 + r"(?:mlx5_cmd_(?:out_err|check|exec)\b[^\n]{0,60}?)?"
            r"ACCESS_REG(?:\(0x[0-9a-f]{1,8}\))?[^\n]{0,60}? failed",
            "the adapter refused a read of one of its registers",
        ),
        "kernel_log.informational",
        "a register that this firmware lacks is refused in the same words",
    ),
)

ADAPTER = Family("nic_driver", "nic", ADAPTER_ROWS)

_INTERFACE = r"(?P<device>(?:ib|eth|en|bond|wl|mlx|rdma|hsn|rail|roce|p|usb|eno|ens|enp|idrac|vlan|br)[\w.@-]{0,30})"

_FELL = r"(?:NIC )?(?:[Pp]ort:? ?\d{1,3},? )?[Ll]ink (?:is )?(?:[Dd]own|DOWN)\b"

LINK = Family(
    "link",
    "nic",
    tuple(
        MessageRow(
            "link_down",
            trigger,
            pattern,
            "a network link went down",
            "info",
            "network.link_event",
            "NONE",
            ambiguous="a link goes down too when the other end is restarted or the interface is set down",
        )
        for trigger, pattern in (
            ("ost carrier", r"(?P<device>[a-z][\w.@-]{1,31}): [Ll]ost carrier"),
            (
                "ink",
                rf"[\w-]{{1,32}} {DEVICE}(?: {_INTERFACE})?(?: \(\w{{1,20}}\))?:? (?:[\w.-]{{1,32}}: )?{_FELL}",
            ),
            ("ink", rf"(?:[\w-]{{1,32}}: )?{_INTERFACE}:? {_FELL}"),
        )
    ),
    writer=r"(?:[\w.-]{1,64} )?(?:systemd-networkd|NetworkManager)(?:\[\d{1,10}\])?: ",
)

_SERVER = r"(?P<server>[\w.:%\[\]-]{1,255})"
_WRITEBACK = (
    "nfs_lock_and_join_requests|nfs_page_group_lock|nfs_page_group_lock_head|nfs_folio_find_and_lock_request|"
    "nfs_wait_on_request|nfs_wb_all|nfs_wb_page|nfs_wb_folio|nfs_page_async_flush|nfs_flush_incompatible|"
    "nfs_writepages|nfs_writepages_callback|nfs_writepage_locked|nfs_do_writepage|nfs_commit_inode|__nfs_commit_inode"
)


def _nfs(event: str, trigger: str, pattern: str, text: str, ambiguous: str = "") -> MessageRow:
    return MessageRow(event, trigger, pattern, text, "warning", "storage.remote", ambiguous=ambiguous)


NFS = Family(
    "nfs",
    "storage_remote",
    (
        _nfs(
            "nfs_server_not_responding",
            "not responding",
            rf"(?:nfs|NFS|nfs4|rpc|lockd|statd): ?server {_SERVER} not responding(?:, (?:still trying|timed out))?",
            "a file server does not answer",
        ),
        MessageRow(
            "nfs_server_ok",
            "server ",
            rf"(?:nfs|NFS|nfs4|rpc|lockd): ?server {_SERVER} OK$",
            "a file server answers again",
            "info",
            "kernel_log.informational",
            "NONE",
        ),
        _nfs(
            "nfs_lock_reclaim_failed",
            "eclaim",
            r"(?:(?:NFS|NFSv4|nfs|nfs4|lockd)\w{0,4}: (?:[\w.]{1,60}: )?|nfs4_\w{1,60}: )"
            r"(?:[Ll]ock reclaim failed|failed to reclaim lock|[^\n]{0,120}?lock reclaim failed)",
            "a lock on a file server was lost when it restarted",
        ),
        _nfs(
            "nfs_writeback_hang",
            "nfs_",
            rf"(?:\? )?(?P<function>{_WRITEBACK})\+0x[0-9a-f]{{1,8}}/0x[0-9a-f]{{1,8}}(?: \[nfs\w{{0,12}}\])?(?:\s|$)",
            "a task waits for data to be written to a file server",
            "one frame of a stack: the report above it says why it was printed",
        ),
    ),
)

PEERMEM = Family(
    "peermem",
    "nic",
    (
        MessageRow(
            "peermem_invalid_context",
            "ERROR detected invalid context",
            r"(?:nvidia[-_]peermem|nv_peer_mem)[: ]{1,2}(?:nv_\w{1,60}(?::\d{1,6})?:? )?ERROR detected invalid context",
            "peer memory of a GPU was released under a network transfer",
            "warning",
            "network.peermem",
        ),
        MessageRow(
            "peermem_error",
            "peer",
            r"(?:nvidia[-_]peermem|nv_peer_mem)[: ]{1,2}(?:nv_\w{1,60}(?::\d{1,6})?:? )?(?:ERROR|error)\b",
            "the peer memory driver reports an error",
            "warning",
            "network.peermem",
        ),
    ),
)
