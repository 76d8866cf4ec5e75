"""Functions, classes, methods and properties that nothing of the house uses; a use by tests alone is none."""

import re
from functools import cache
from pathlib import Path

import pytest
from vulture import Vulture

pytestmark = pytest.mark.xdist_group("dead_surface")  # the house is read once, by one worker
READ = tuple(Path(__file__).parents[2] / name for name in ("src", "bench", "packages", "scripts"))
KINDS = ("function", "class", "method", "property")
ROUTES = ("@get", "@post", "@put", "@patch", "@delete", "@head", "@route")
DECORATED = (*ROUTES, "@app.*", "@*.command", "@*.meta.default", "@*.default", "@*.register")
"""A decorator that hands the function to a framework, which calls it."""
CALLED_BY_OTHERS = {
    "__call__": "a protocol's, called as a function",
    "__getattr__": "Python's, of a module",
    "render_usage": "cyclopts",
    "render_description": "cyclopts",
    "_get_socket": "smtplib",
    "process_bind_param": "SQLAlchemy",
    "process_result_value": "SQLAlchemy",
    "send_400_response": "uvicorn",
    "capture_signals": "uvicorn",
    "wait_closed": "uvicorn",
    "is_plugin_supported_type": "Litestar",
    "to_openapi_schema": "Litestar",
    "CustomBuildHook": "hatchling",
    "initialize": "hatchling",
    "forward": "PyTorch",
    "precision": "msgspec, which makes a row of a score by its fields' names",
}
NAMED_BY_TEXT = re.compile(r"""["'][\w.]+:(\w+)["']""")
"""A function of a module that is loaded by its name, as a check of the suite or a command is: "module:function"."""
LEVERS = {
    "factory_reset": "a BMC forgets its accounts",
    "hang": "a machine hangs",
    "go_silent": "an agent ends without a word",
    "take_stock": "a twin's parts are read at a moment",
    "client_context": "a client trusts a twin's certificate",
    "worlds_of": "the worlds of a soak's seeds",
    "soak": "many worlds, from `python -m tests.simulation.soak`",
    "unmet": "limits that no world of a soak met",
    "assumed": "a constant without a source",
}
"""Parts of `hostler.sim` that only tests pull: it exists for them."""


def unused(*folders: Path) -> list[str]:
    """Names that nothing in the folders uses, with their places."""
    found = (one for one in scavenged(*folders).get_unused_code() if one.typ in KINDS)
    left = (one for one in found if one.name not in CALLED_BY_OTHERS and one.name not in named_by_text(*folders))
    return [
        f"{one.filename}:{one.first_lineno} {one.typ} {one.name}"
        for one in left
        if not (one.name in LEVERS and "hostler/sim/" in str(one.filename))
    ]


@cache
def named_by_text(*folders: Path) -> set[str]:
    """Functions that a text names with their module."""
    texts = (path.read_text("utf-8") for folder in folders for path in folder.rglob("*.py"))
    return {name for text in texts for name in NAMED_BY_TEXT.findall(text)}


@cache
def scavenged(*folders: Path) -> Vulture:
    """The folders' names, made and used."""
    reader = Vulture(ignore_decorators=list(DECORATED))
    reader.scavenge([str(folder) for folder in folders])
    return reader


def test_nothing_stands_in_the_house_that_nobody_uses() -> None:
    assert unused(*READ) == []


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("def rule(): ...", ["function rule"]),
        ("class Rule: ...", ["class Rule"]),
        ("class Rule:\n    def holds(self): ...\n\n\nRule()", ["method holds"]),
        ("class Rule:\n    @property\n    def holds(self): ...\n\n\nRule()", ["property holds"]),
        ("def rule(): ...\n\n\nrule()", []),
        ('@get("/rules")\ndef rule(): ...', []),
        ('def rule(): ...\n\n\nENTRY = "rules:rule"', []),
    ],
)
def test_what_is_unused_is_found_and_what_a_framework_calls_is_not(tmp_path: Path, text: str, named: list[str]) -> None:
    (tmp_path / "one.py").write_text(text, "utf-8")
    assert [place.partition(" ")[2] for place in unused(tmp_path)] == named


def test_each_exception_is_of_something_that_stands() -> None:
    """A name that is gone leaves the lists."""
    reader = scavenged(*READ)
    made = {one.name for one in (*reader.defined_funcs, *reader.defined_methods, *reader.defined_props)}
    made |= {one.name for one in reader.defined_classes}
    assert {*CALLED_BY_OTHERS, *LEVERS} - made == set()
