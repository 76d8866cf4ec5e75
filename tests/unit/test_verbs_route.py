"""Verbs as a form needs them: every one that people write, with its arguments as the structs have them."""

from hostler.core.state.verbs.every import VERBS
from hostler.server.routes.verbs import VIEWS


def test_each_verb_is_shown_with_its_help_and_how_the_command_line_calls_it() -> None:
    shown = {view.verb: view for view in VIEWS}
    assert set(shown) == set(VERBS)
    assert shown["reboot"].command == "node reboot"
    assert (shown["reboot"].on_node, shown["reboot"].on_rack) == (True, True)
    assert shown["release-brake"].command == "brake release"
    assert all(view.help for view in VIEWS)


def test_arguments_have_their_kind_their_values_and_whether_they_must_be_given() -> None:
    """Mutants: an optional number is text; an argument without a default is optional; a help beside a bound is lost."""
    args = {(view.verb, arg.name): arg for view in VIEWS for arg in view.args}
    assert args["reboot", "now"].kind == "boolean"
    assert args["cordon", "hours"].kind == "number"
    assert not args["cordon", "hours"].required
    assert args["start-work", "serial"].required
    assert args["mode", "mode"].choices == ("observe", "propose", "act")
    assert args["mode", "mode"].kind == "choice"
    assert "scanned" in args["start-work", "serial"].help
    assert "due in so many days" in args["edit-rma", "due_days"].help
    assert "too few" in args["count-stock", "least"].help
    assert (args["count-stock", "count"].kind, args["mode", "remedy"].kind) == ("integer", "text")
    assert args["schedule-maintenance", "starts"].kind == "moment"
    assert args["answer-maintenance", "rather"].kind == "moment"
