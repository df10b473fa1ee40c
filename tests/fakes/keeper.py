"""A keeper that remembers."""

from surtitle.core.transcript import Entry

__all__ = ["RememberingKeeper"]


class RememberingKeeper:
    """As `surtitle.captioner.Keeper`."""

    def __init__(self) -> None:
        self.entries: dict[int, Entry] = {}

    def keep(self, entry: Entry) -> None:
        self.entries[entry.key] = entry

    @property
    def words(self) -> list[str]:
        return " ".join(entry.text for entry in self.entries.values()).split()

    @property
    def gaps(self) -> list[tuple[float, float]]:
        return [(entry.start, entry.end) for entry in self.entries.values() if entry.gap]
