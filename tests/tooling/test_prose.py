from pathlib import Path

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
