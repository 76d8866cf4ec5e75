"""Rules of a configuration's boot section: images with their checksums, names that exist, keys that are known."""

import re
from collections.abc import Iterator

from hostler.core.policy.netplan_rules import network_problems
from hostler.core.state.boot import (
    HOLD,
    LOCAL_DISK,
    BootAgent,
    BootConfiguration,
    BootImage,
    BootLoader,
    BootMedia,
    CloudInitLayer,
)
from hostler.core.state.configuration import Configuration
from hostler.core.state.input_problems import WrongEntry
from hostler.core.state.model import Phase

ARCHES = ("x86_64", "arm64")
NAMED = ("production", "burn_in", "firmware", "inspection")
_URL = re.compile(r"http://[A-Za-z0-9.\-:\[\]]{1,253}")
_HTTPS = re.compile(r"https://[A-Za-z0-9.\-:\[\]]{1,253}")
_OPTIONS = re.compile(r"[A-Za-z0-9 _./:,=@+\-]{0,500}")
_FILE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._+\-]*(/[A-Za-z0-9_][A-Za-z0-9._+\-]*)*")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_ARGS = re.compile(r"[ -~]{0,1500}")
"""The kernel takes 2,048 characters in all; some are added."""

_CLOUD_CONFIG = """
    allow_public_ssh_keys ansible apk_repos apt apt_pipelining apt_reboot_if_required apt_update apt_upgrade
    authkey_hash autoinstall bootcmd byobu_by_default ca-certs ca_certs chef chpasswd cloud_config_modules
    cloud_final_modules cloud_init_modules create_hostname_file datasource datasource_list debug def_log_file
    device_aliases disable_ec2_metadata disable_root disable_root_opts disk_setup drivers fan final_message fqdn
    fs_setup groups growpart grub-dpkg grub_dpkg hostname keyboard landscape locale locale_configfile lxd
    manage-resolv-conf manage_etc_hosts manage_resolv_conf mcollective merge_how merge_type migrate
    mount_default_fields mounts network no_ssh_fingerprints ntp output package_reboot_if_required package_update
    package_upgrade packages password phone_home power_state prefer_fqdn_over_hostname preserve_hostname puppet
    random_seed reporting resize_rootfs resolv_conf rh_subscription rsyslog runcmd salt_minion snap spacewalk ssh
    ssh_authorized_keys ssh_deletekeys ssh_fp_console_blacklist ssh_genkeytypes ssh_import_id ssh_keys
    ssh_publish_hostkeys ssh_pwauth ssh_quiet_keygen swap system_info timezone ubuntu_advantage ubuntu_pro updates
    user users vendor_data version wireguard write_files yum_repo_dir yum_repos zypper
"""
CLOUD_CONFIG = frozenset(_CLOUD_CONFIG.split())
"""Top-level keys of cloud-config (cloud-init's module reference); its own schema check lets others pass."""


def boot_problems(configuration: Configuration) -> Iterator[WrongEntry]:
    """Every problem of the section; none where there is none."""
    boots = configuration.boot
    if boots is None:
        return
    if not _URL.fullmatch(boots.url):
        yield WrongEntry(f"url '{boots.url[:100]}' is no address", "write http://HOST:PORT as nodes reach it", ("url",))
    for name, image in boots.images.items():
        yield from (wrong.below(("images", name), f"image {name}") for wrong in _image_problems(image))
    for arch, loader in boots.loaders.items():
        yield from (wrong.below(("loaders", arch), f"loader {arch[:40]}") for wrong in _loader_problems(arch, loader))
    if boots.media is not None:
        yield from (wrong.below(("media",), "media") for wrong in _media_problems(boots.media))
    if boots.agent is not None:
        yield from (wrong.below(("agent",), "agent") for wrong in _agent_problems(boots.agent))
    yield from _unknown_images(boots, configuration)
    for path, layer in layers_of(boots):
        yield from _layer_problems(path, layer)
    yield from network_problems(layers_of(boots))


def layers_of(boots: BootConfiguration) -> Iterator[tuple[tuple[str, ...], CloudInitLayer]]:
    """Every layer of cloud-init's data with its path below the section."""
    layers = boots.cloud_init
    yield ("cloud_init", "site"), layers.site
    for kind, named in (("skus", layers.skus), ("pools", layers.pools), ("nodes", layers.nodes)):
        yield from ((("cloud_init", kind, name), layer) for name, layer in named.items())


def _image_problems(image: BootImage) -> Iterator[WrongEntry]:
    if image.arch not in ARCHES:
        yield WrongEntry(f"no architecture '{image.arch[:40]}'", f"write one of {', '.join(ARCHES)}")
    if not _ARGS.fullmatch(image.args):
        yield WrongEntry("its kernel arguments are too long or not printable ASCII on one line", "shorten them")
    for path in image.files:
        if not _FILE.fullmatch(path) or len(path) > 200:
            yield WrongEntry(
                f"'{path[:100]}' is no path below the image folder", "write letters, digits, '._+-' and '/'"
            )
        if not _SHA256.fullmatch(image.sha256.get(path, "")):
            yield WrongEntry(f"{path[:100]} has no sha256", "write what sha256sum prints for it under sha256")
    if spare := image.sha256.keys() - set(image.files):
        yield WrongEntry(f"sha256 names {min(spare)[:100]}, which is none of its files", "remove that sum")


def _loader_problems(arch: str, loader: BootLoader) -> Iterator[WrongEntry]:
    if arch not in ARCHES:
        yield WrongEntry("its architecture is not known", f"write one of {', '.join(ARCHES)}")
    if not _FILE.fullmatch(loader.file) or len(loader.file) > 200 or not loader.file.endswith(".efi"):
        yield WrongEntry(
            f"'{loader.file[:100]}' is no EFI binary below the image folder", "write a path that ends with .efi"
        )
    if not _SHA256.fullmatch(loader.sha256):
        yield WrongEntry("sha256 is missing", "write what sha256sum prints for it")


def _media_problems(media: BootMedia) -> Iterator[WrongEntry]:
    if media.url and not _URL.fullmatch(media.url) and not _HTTPS.fullmatch(media.url):
        what = f"url '{media.url[:100]}' is no address"
        instead = "write http://HOST:PORT as BMCs reach the boot listener, or https:// with --boot-media-listen"
        yield WrongEntry(what, instead, ("url",))
    for arch, medium in media.files.items():
        at = ("files", arch)
        if arch not in ARCHES:
            yield WrongEntry(f"no architecture '{arch[:40]}'", f"write one of {', '.join(ARCHES)}", at)
        if not _FILE.fullmatch(medium.file) or len(medium.file) > 200 or not medium.file.endswith(".iso"):
            what = f"'{medium.file[:100]}' is no ISO image below the image folder"
            yield WrongEntry(what, "write a path that ends with .iso; `hostler boot medium` makes one", at)
        if not _SHA256.fullmatch(medium.sha256):
            yield WrongEntry(f"the medium for {arch[:40]} has no sha256", "write what sha256sum prints for it", at)


def _agent_problems(agent: BootAgent) -> Iterator[WrongEntry]:
    if not _FILE.fullmatch(agent.package) or len(agent.package) > 200 or not agent.package.endswith(".deb"):
        yield WrongEntry(
            f"'{agent.package[:100]}' is no Debian package below the image folder", "see make deb", ("package",)
        )
    if not _SHA256.fullmatch(agent.sha256):
        yield WrongEntry("sha256 is missing", "write what sha256sum prints for the package", ("sha256",))
    if not all(_HTTPS.fullmatch(one) for one in agent.server.split(",")):
        what = f"server '{agent.server[:100]}' is no list of https addresses"
        yield WrongEntry(what, "write https://HOST:PORT of each controller, with commas between", ("server",))
    if "-----BEGIN CERTIFICATE-----" not in agent.ca:
        yield WrongEntry("no certificate", "write the PEM of the controllers' authority", ("ca",))
    if agent.tpm_authorities and "-----BEGIN CERTIFICATE-----" not in agent.tpm_authorities:
        yield WrongEntry("no certificate", "write the PEM of the TPM makers' authorities", ("tpm_authorities",))
    if not _OPTIONS.fullmatch(agent.options):
        yield WrongEntry(
            "its options are not words of an environment file", "leave out quotes, $ and backslashes", ("options",)
        )


def _unknown_images(boots: BootConfiguration, configuration: Configuration) -> Iterator[WrongEntry]:
    known = {*boots.images, HOLD, LOCAL_DISK}
    for phase, name in boots.phases.items():
        if phase not in Phase.__members__:
            yield WrongEntry(
                f"no phase '{phase[:40]}'", f"write one of {', '.join(Phase.__members__)}", ("phases", phase)
            )
        if name not in known | set(NAMED):
            yield WrongEntry(f"no image '{name[:80]}'", "add it under images", ("phases", phase))
    for pool, name in boots.pools.items():
        if pool not in configuration.pools:
            yield WrongEntry(f"no pool '{pool[:80]}'", "add it under pools", ("pools", pool))
        if name not in known:
            yield WrongEntry(f"no image '{name[:80]}'", "add it under images", ("pools", pool))


def _layer_problems(path: tuple[str, ...], layer: CloudInitLayer) -> Iterator[WrongEntry]:
    for part, data in (("user_data", layer.user_data), ("vendor_data", layer.vendor_data)):
        for key in sorted(set(data) - CLOUD_CONFIG):
            yield WrongEntry(
                f"cloud-init knows no key '{key[:80]}'", "see cloud-init's module reference", (*path, part, key)
            )
