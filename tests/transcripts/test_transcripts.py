"""Each story goes as its transcript says. `pytest tests/transcripts --rewrite-transcripts` writes them for review."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.transcripts.scribe import Scribe
from tests.transcripts.stories import STORIES

HERE = Path(__file__).parent


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_the_story_goes_as_its_transcript_says(story: Callable[[], Scribe], request: pytest.FixtureRequest) -> None:
    """Mutants: a step is left out or sent twice; an answer says something else; a record is missing or more."""
    heading = f"# {story.__doc__}\n"
    told, file = heading + story().text(), HERE / f"{story.__name__}.txt"
    if request.config.getoption("--rewrite-transcripts"):
        file.write_text(told, "utf-8")
    assert told == file.read_text("utf-8")


def test_every_transcript_has_its_story() -> None:
    assert {file.stem for file in HERE.glob("*.txt")} == {story.__name__ for story in STORIES}


def test_two_tellings_of_a_story_are_the_same() -> None:
    assert STORIES[0]().text() == STORIES[0]().text()
