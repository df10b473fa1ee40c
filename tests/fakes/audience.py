"""An audience that remembers, and that notices when text which should stay does not."""

from surtitle.core.captions import Passage, Snapshot
from surtitle.core.health import State, Status

__all__ = ["RememberingAudience"]


class RememberingAudience:
    """As `surtitle.captioner.Audience`."""

    def __init__(self) -> None:
        self.snapshots: list[Snapshot] = []
        self.statuses: list[Status] = []
        self.notices: list[str] = []
        self.passages: dict[int, Passage] = {}
        """The newest of each key, in the order in which they began."""

    def captions(self, snapshot: Snapshot, changed: list[Passage]) -> None:
        if self.snapshots:
            assert snapshot.revision > self.snapshots[-1].revision
        self.snapshots.append(snapshot)
        for passage in changed:
            before = self.passages.get(passage.key)
            if before is not None:
                assert not before.closed, "closed is closed"
                assert passage.settled.startswith(before.settled), "a settled word has changed"
            self.passages[passage.key] = passage

    def status(self, status: Status) -> None:
        self.statuses.append(status)

    def notice(self, text: str) -> None:
        self.notices.append(text)

    @property
    def lines(self) -> list[str]:
        """What is settled, a line for each passage that has text."""
        return [p.settled for p in self.passages.values() if p.settled]

    @property
    def words(self) -> list[str]:
        """The settled words, without the gap marks."""
        said = [p.settled for p in self.passages.values() if not p.gap]
        return " ".join(said).split()

    @property
    def gaps(self) -> list[tuple[int, int]]:
        return [(p.start, p.end) for p in self.passages.values() if p.gap]

    @property
    def states(self) -> list[State]:
        """The states, each once where it goes on."""
        states = [status.state for status in self.statuses]
        return [s for i, s in enumerate(states) if i == 0 or states[i - 1] is not s]
