"""Configuration for dnsmasq: which boot loader a machine gets, and where that one asks. Leases stay its own."""

from hostler.core.state.boot import BootConfiguration

_TAGS = (
    "dhcp-userclass=set:ipxe,iPXE",
    "dhcp-match=set:efi,option:client-arch,7",
    "dhcp-match=set:efi,option:client-arch,9",
    "dhcp-match=set:efi,option:client-arch,11",
)


def dnsmasq_config(boots: BootConfiguration) -> str:
    """The lines that dnsmasq needs beside its ranges: a machine without iPXE fetches it by TFTP, iPXE asks Hostler."""
    lines = (
        "# Written by `hostler boot dnsmasq`. dnsmasq's own: interface, dhcp-range, enable-tftp, tftp-root.",
        *_TAGS,
        f"dhcp-boot=tag:ipxe,{boots.url}/ipxe",
        "dhcp-boot=tag:!ipxe,tag:efi,snponly.efi",
        "dhcp-boot=tag:!ipxe,tag:!efi,undionly.kpxe",
    )
    return "\n".join((*lines, ""))
