"""`hostler docs`: the reference, generated from the tables that decide and the commands that run."""

from pathlib import Path

from cyclopts import App

from hostler.cli.command_errors import unusable

app = App(name="docs", help="The reference, generated from the code.")


@app.command
def generate(*, out: Path) -> int:
    """Write the reference's pages into a directory. The same code gives the same bytes."""
    from hostler.cli.reference import pages
    from hostler.cli.reference.syntax import uncollected

    try:
        out.mkdir(parents=True, exist_ok=True)
        with uncollected():
            made = pages()
        for name, text in made.items():
            (out / name).write_text(text, encoding="utf-8")
            print(out / name)
    except OSError as error:
        raise unusable(f"{out}: {error.strerror}", "name a directory that you can write to") from error
    return 0
