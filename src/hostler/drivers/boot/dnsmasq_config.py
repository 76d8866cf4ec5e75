"""Configuration for dnsmasq: which boot loader a machine gets, and where that one asks. Leases stay its own."""

from hostler.core.state.boot import BootConfiguration

_TAGS = (
    "dhcp-userclass=set:ipxe,iPXE",
    "dhcp-match=set:efi,option:client-arch,7",
    "dhcp-match=set:efi,option:client-arch,9",
    "dhcp-match=set:efi,option:client-arch,11",
)
_BY_HTTP = {"x86_64": 16, "arm64": 19}
"""Architecture of UEFI HTTP boot → its number in DHCP's option 93 (IANA, processor architecture types)."""


def dnsmasq_config(boots: BootConfiguration) -> str:
    """The lines that dnsmasq needs beside its ranges: a machine without iPXE fetches it by TFTP, iPXE asks Hostler."""
    lines = (
        "# Written by `hostler boot dnsmasq`. dnsmasq's own: interface, dhcp-range, enable-tftp, tftp-root.",
        *_TAGS,
        *(line for arch in boots.loaders for line in _by_http(boots, arch)),
        f"dhcp-boot=tag:ipxe,{boots.url}/ipxe",
        "dhcp-boot=tag:!ipxe,tag:efi,snponly.efi",
        f"dhcp-boot=tag:!ipxe,tag:!efi{_not_http(boots)},undionly.kpxe",
    )
    return "\n".join((*lines, ""))


def _by_http(boots: BootConfiguration, arch: str) -> tuple[str, ...]:
    """Lines for machines whose UEFI boots by HTTP itself; it wants the vendor class back."""
    return (
        f"dhcp-match=set:http-{arch},option:client-arch,{_BY_HTTP[arch]}",
        f"dhcp-boot=tag:!ipxe,tag:http-{arch},{boots.url}/loader/{arch}.efi",
        f"dhcp-option-force=tag:!ipxe,tag:http-{arch},60,HTTPClient",
    )


def _not_http(boots: BootConfiguration) -> str:
    return "".join(f",tag:!http-{arch}" for arch in boots.loaders)
