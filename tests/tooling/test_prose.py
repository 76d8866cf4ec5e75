from pathlib import Path

import pytest

from scripts import prose

UNUSED = prose.words("| prose | stands at | is in |\n| names | eye | reader |\n| word | not a row of it |\n")


def test_the_table_of_words_not_used_is_read_from_the_glossary() -> None:
    assert UNUSED == [("prose", "stands at", "is in"), ("names", "eye", "reader")]
    assert prose.words(prose.GLOSSARY.read_text("utf-8"))


def test_docstrings_and_names_are_found_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "room").mkdir()
    (tmp_path / "room" / "nodes.py").write_text(
        '"""The node stands\nat production."""\n\nA = 1\n"""It stands at boot."""\nB = "stands at"\n\n\n'
        "class BmcEye:\n    pass\n\n\nclass Eyelid:\n    pass\n\n\n"
        "def look(eyelid, the_eye):\n    the_eye.eye_s = eyelid.eye\n",
        "utf-8",
    )
    found = sorted(prose.findings(tmp_path, UNUSED), key=lambda each: each[1])
    assert found == [
        ("room/nodes.py", 1, '"stands at": say "is in"'),
        ("room/nodes.py", 5, '"stands at": say "is in"'),
        ("room/nodes.py", 9, 'BmcEye: say "reader"'),
        ("room/nodes.py", 17, 'the_eye: say "reader"'),
        ("room/nodes.py", 18, 'eye_s: say "reader"'),
    ]


def test_tests_benches_and_packages_are_read_as_the_source_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Mutants: `src` alone is read; a file whose words stand on two lines is passed over."""
    for folder in prose.FOLDERS:
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "one.py").write_text('"""It stands\nat boot."""\n\nthe_eye = 1\n', "utf-8")
    glossary = tmp_path / "glossary.md"
    glossary.write_text("| eye | it sees |\n| prose | stands at | is in |\n| names | eye | reader |\n", "utf-8")
    monkeypatch.setattr(prose, "ROOT", tmp_path)
    monkeypatch.setattr(prose, "GLOSSARY", glossary)
    assert prose.main() == 1
    found = capsys.readouterr().out.splitlines()
    assert sum('"stands at"' in line for line in found) == len(prose.FOLDERS) == 4
    assert {line.partition("/")[0] for line in found if "the_eye" in line} == {"src", "bench", "packages", "tests"}


def test_a_word_of_the_glossary_that_no_name_has_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Mutants: a word in a sentence is a name; a row of the words not used is looked for."""
    for folder in prose.CODE:
        (tmp_path / folder).mkdir(parents=True)
    text = '"""The veil of it."""\n\n\nclass CrashPoints: ...\n\n\ndef held(sxid_code: int, storm_brake=None): ...\n'
    (tmp_path / "bench/agent_mailbox.py").write_text(text, "utf-8")
    rows = ("word | meaning", "crash point | x", "SXid, brakes | x", "agent mailbox | x", "veil (of y) | x")
    glossary = tmp_path / "glossary.md"
    glossary.write_text("".join(f"| {row} |\n" for row in (*rows, "names | eye | x")), "utf-8")
    monkeypatch.setattr(prose, "ROOT", tmp_path)
    monkeypatch.setattr(prose, "GLOSSARY", glossary)
    assert prose.main() == 1
    assert capsys.readouterr().out == "glossary.md: no name in the code has 'veil'\n"
