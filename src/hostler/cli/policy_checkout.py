"""Reads configuration documents from a commit of a Git checkout. Git is asked by argument vectors, never by a shell."""

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

from hostler.cli.command_errors import CommandError, unusable
from hostler.cli.exit_codes import ExitCode
from hostler.cli.input_files import MAX_BYTES

GIT_S = 60.0
FILES_MOST = 1_000
_YAML = (".yaml", ".yml")
_ELSEWHERE = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_NAMESPACE", "GIT_PREFIX")
"""Variables by which a hook or a runner points Git elsewhere than the path says."""
_SAFE = ("--no-pager", "--literal-pathspecs", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null")


@dataclass(frozen=True)
class Committed:
    """Documents as they are at a commit, and where the commit is from; `origin` has no login."""

    folder: Path
    commit: str
    ref: str
    origin: str
    documents: dict[str, str]

    def source(self) -> dict[str, str]:
        """The source as the API takes it."""
        return {"commit": self.commit, "ref": self.ref, "origin": self.origin}


def read_commit(path: str, ref: str) -> Committed:
    """The YAML documents at the path, which is a file or a folder, as the ref's commit has them.

    Raises CommandError: no Git work tree, uncommitted changes there, no such ref, nothing or a link at that commit.
    """
    folder, inside = _place(Path(path))
    asked = ref or "HEAD"
    commit = _git(
        folder, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{asked}^{{commit}}", good=(0, 1, 128)
    )
    if not commit:
        raise unusable(f"{asked} is no commit of {folder}", "name a branch, a tag or a commit, or fetch it (git fetch)")
    if not ref:
        _demand_clean(folder, inside)
    blobs = _blobs(folder, commit, inside, path)
    documents = {name: _text(folder, blob, f"{name} at {commit[:12]}") for name, blob in blobs.items()}
    return Committed(folder, commit, _name(folder, asked), _origin(folder), documents)


def is_later(folder: Path, commit: str, active: str) -> bool:
    """Whether the commit is the active one or comes after it. Raises CommandError where the active one is unknown."""
    if not _git(folder, "rev-parse", "--verify", "--quiet", f"{active}^{{commit}}", good=(0, 1, 128)):
        raise CommandError(
            ExitCode.refused,
            f"the active policy is of commit {active[:12]}, which this checkout does not have",
            "fetch it (git fetch --unshallow), or add --allow-older where the history was written anew",
        )
    return _run(folder, "merge-base", "--is-ancestor", active, commit).returncode == 0


def _place(path: Path) -> tuple[Path, str]:
    """The top folder of the work tree, and the path in it. Raises CommandError."""
    near = path if path.is_dir() and not path.is_symlink() else path.parent
    while not near.is_dir() and near != near.parent:
        near = near.parent
    real = near.resolve()
    found = _run(real, "rev-parse", "--show-toplevel")
    if found.returncode:
        raise unusable(f"{path} is in no Git work tree", "name a file or folder of a checkout (git clone)")
    top = Path(found.stdout.decode(errors="surrogateescape").removesuffix("\n"))
    inside = (real / os.path.relpath(path, near)).relative_to(top).as_posix()
    return top, "" if inside == "." else inside


def _demand_clean(folder: Path, inside: str) -> None:
    said = _git(folder, "status", "--porcelain=v1", "-z", "--untracked-files=all", "--", inside or ".")
    if changed := [entry[3:] for entry in said.split("\0") if entry]:
        raise CommandError(
            ExitCode.refused,
            f"uncommitted changes: {', '.join(changed[:5])}{' …' if len(changed) > 5 else ''}",
            "commit them, or name the commit to read with --ref",
        )


def _blobs(folder: Path, commit: str, inside: str, path: str) -> dict[str, str]:
    """Name → object of each document at the path. Raises CommandError for what is no plain file."""
    own = _entries(folder, commit, inside) if inside else []
    if inside and not own:
        raise unusable(f"{path} is not at commit {commit[:12]}", "add and commit it, or name another --ref")
    is_folder = not inside or own[0][1] == "tree"
    entries = _entries(folder, commit, f"{inside}/" if inside else "") if is_folder else own
    found: dict[str, str] = {}
    for mode, kind, blob, name in entries:
        if is_folder and not name.endswith(_YAML):
            continue
        if kind != "blob" or mode == "120000":
            what = "a symbolic link" if mode == "120000" else "no file"
            raise unusable(f"{name} is {what} at commit {commit[:12]}", "commit the document itself")
        found[PurePosixPath(name).name] = blob
    if not found:
        raise unusable(f"{path} has no YAML document at commit {commit[:12]}", "commit a .yaml file there")
    if len(found) > FILES_MOST:
        raise unusable(f"{path} has {len(found)} documents", f"name a folder of {FILES_MOST} at most")
    return found


def _entries(folder: Path, commit: str, inside: str) -> list[tuple[str, str, str, str]]:
    said = _git(folder, "ls-tree", "-z", "--full-tree", commit, *(["--", inside] if inside else []))
    lines = [line.partition("\t") for line in said.split("\0") if line]
    return [(*_three(head), name) for head, _, name in lines]


def _three(head: str) -> tuple[str, str, str]:
    mode, kind, blob = head.split(" ")
    return mode, kind, blob


def _text(folder: Path, blob: str, name: str) -> str:
    if int(_git(folder, "cat-file", "-s", blob)) > MAX_BYTES:
        raise unusable(f"{name}: larger than {MAX_BYTES} bytes", "split it")
    data = _run(folder, "cat-file", "blob", blob).stdout
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise unusable(f"{name}: not UTF-8 at byte {error.start}", "save it as UTF-8") from error


def _name(folder: Path, asked: str) -> str:
    """The branch or tag, "" where a commit was named or nothing is checked out by name."""
    found = _git(folder, "rev-parse", "--symbolic-full-name", "--end-of-options", asked, good=(0, 128))
    name = found.splitlines()[-1] if found else ""
    return name.removeprefix("refs/heads/").removeprefix("refs/tags/") if name.startswith("refs/") else ""


def _origin(folder: Path) -> str:
    """The address of the remote `origin`, without a login or a query; "" where there is none or it is no plain text."""
    url = _git(folder, "config", "--get", "remote.origin.url", good=(0, 1))
    parts = urlsplit(url) if "://" in url else None
    bare = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}" if parts else url.rpartition("@")[2]
    return bare if len(bare) <= 500 and bare.isascii() and bare.isprintable() and not set(" @") & set(bare) else ""


def _git(folder: Path, *words: str, good: tuple[int, ...] = (0,)) -> str:
    """Answer of Git. Raises CommandError where it fails."""
    done = _run(folder, *words)
    if done.returncode not in good:
        said = done.stderr.decode(errors="replace").strip()[:300]
        raise unusable(f"git {words[0]} failed in {folder}: {said}", "mend the checkout")
    return done.stdout.decode(errors="surrogateescape").removesuffix("\n") if done.returncode == 0 else ""


def _run(folder: Path, *words: str) -> subprocess.CompletedProcess[bytes]:
    kept = {name: value for name, value in os.environ.items() if name not in _ELSEWHERE}
    env = kept | {"GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}
    argv = ["git", *_SAFE, "-C", str(folder), *words]
    try:
        return subprocess.run(  # noqa: S603 - Git by an argument vector; no word of it is read by a shell
            argv, env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=GIT_S, check=False
        )
    except FileNotFoundError as error:
        raise unusable("git is not installed here", "install it (apt-get install git)") from error
    except subprocess.TimeoutExpired as error:
        raise CommandError(ExitCode.unavailable, f"git {words[0]} took more than {GIT_S:.0f} s", "try again") from error
