"""Door at which agents of a simulated world ask whom to meet: the hall and the rules of production, in virtual time."""

from hostler.controller.inputs import CompanySought
from hostler.controller.loop import Controller
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.meetings import MeetingReply
from hostler.polling.meeting_hall import MeetingHall
from hostler.polling.meeting_questions import MeetingQuestion, answer, is_under_check, seeks_company
from hostler.polling.pair_results import PairResults
from hostler.sim.simulation_loop import Drive


class MeetingDoor:
    """Questions of agents for whichever controller is active. With a new one all meet anew."""

    def __init__(self, drive: Drive) -> None:
        self._drive = drive
        self._term: Controller | None = None
        self.pairs = PairResults()
        self._hall = self._new_hall()

    def ask(self, name: str, asked: MeetingQuestion) -> MeetingReply | None:
        """Answer as the server's route does; None where no controller is active, or the check is not under way."""
        controller = self._drive.controller
        if controller is not self._term:
            self._term, self._hall = controller, self._new_hall()
        if controller is None:
            return None
        node = controller.fleet.nodes[name]
        if not is_under_check(node, asked.operation):
            return MeetingReply(is_done=True)
        context = DecisionContext(controller.fleet, controller.live, controller.now)
        reply = answer(self._hall, context, node, asked)
        if seeks_company(context, node, reply):
            self._drive.world.site.tell(CompanySought(name))
        return reply

    def _new_hall(self) -> MeetingHall:
        return MeetingHall(self.pairs.add, lambda: self._drive.world.site.recorded)
