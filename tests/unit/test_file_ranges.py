"""Bytes of a file that a request is sent."""

import pytest

from hostler.server.boot.file_ranges import FileCut, cut_of

TAG = '"a-64"'
ALL = FileCut(200, 0, 100)


@pytest.mark.parametrize(
    ("headers", "cut"),
    [
        ({}, ALL),
        ({"range": "bytes=0-0"}, FileCut(206, 0, 1)),
        ({"range": "bytes=10-19"}, FileCut(206, 10, 20)),
        ({"range": "bytes=90-"}, FileCut(206, 90, 100)),
        ({"range": "bytes=90-1000"}, FileCut(206, 90, 100)),
        ({"range": "bytes=-7"}, FileCut(206, 93, 100)),
        ({"range": "bytes=-700"}, FileCut(206, 0, 100)),
        ({"range": "bytes=100-"}, FileCut(416)),
        ({"range": "bytes=-0"}, FileCut(416)),
        ({"range": "bytes=9-3"}, ALL),
        ({"range": "bytes=-"}, ALL),
        ({"range": "bytes=0-1,5-6"}, ALL),
        ({"range": "lines=0-1"}, ALL),
        ({"range": "bytes=" + "9" * 40 + "-"}, ALL),
        ({"range": "bytes=0-9", "if-range": TAG}, FileCut(206, 0, 10)),
        ({"range": "bytes=0-9", "if-range": '"other"'}, ALL),
        ({"if-none-match": TAG}, FileCut(304)),
        ({"if-none-match": f'"x", W/{TAG}'}, FileCut(304)),
        ({"if-none-match": "*"}, FileCut(304)),
        ({"if-none-match": '"x"'}, ALL),
    ],
)
def test_which_bytes_are_sent(headers: dict[str, str], cut: FileCut) -> None:
    """Mutants: a last byte is left out; a range of another version is a part of this one; a suffix is a start."""
    assert cut_of(headers, 100, TAG) == cut


def test_what_has_no_tag_is_never_unchanged() -> None:
    assert cut_of({"if-none-match": "*"}, 100, "") == ALL
    assert cut_of({"range": "bytes=0-"}, 0, "") == FileCut(416)
