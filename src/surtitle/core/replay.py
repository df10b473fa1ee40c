"""The sound that has no settled text yet, kept so that it can be heard again."""

from collections import deque
from dataclasses import replace
from itertools import islice

from surtitle.core.audio import SAMPLE_RATE, Chunk

__all__ = ["ReplayBuffer"]


class ReplayBuffer:
    """Chunks in order, with a mark for how far they have been handed out.

    Args:
        bound: Seconds of sound kept at most. When more comes, the oldest goes.
    """

    def __init__(self, *, bound: float = 600.0) -> None:
        self._bound = int(bound * SAMPLE_RATE)
        self._chunks: deque[Chunk] = deque()
        self._handed_out = 0
        """How many of the chunks have been taken."""
        self._samples = 0
        self._waiting = 0
        self._end = 0

    @property
    def kept(self) -> int:
        """Samples in the buffer."""
        return self._samples

    @property
    def waiting(self) -> int:
        """Samples that have not been taken yet."""
        return self._waiting

    @property
    def end(self) -> int:
        """Position one past the newest sample ever put in."""
        return self._end

    def put(self, chunk: Chunk) -> tuple[int, int] | None:
        """Add the newest chunk. Gives the span of sound that had to go, if any."""
        self._chunks.append(chunk)
        self._samples += chunk.samples
        self._waiting += chunk.samples
        self._end = chunk.end
        lost: tuple[int, int] | None = None
        while self._samples > self._bound:
            oldest = self._drop()
            lost = (lost[0] if lost else oldest.start, oldest.end)
        return lost

    def take(self) -> Chunk | None:
        """The next chunk, or None if all have been taken."""
        if self._handed_out == len(self._chunks):
            return None
        chunk = self._chunks[self._handed_out]
        self._handed_out += 1
        self._waiting -= chunk.samples
        return chunk

    def release(self, position: int) -> None:
        """Let go of what lies before `position` and has been taken."""
        while self._handed_out and self._chunks[0].end <= position:
            self._drop()

    def rewind(self, position: int) -> None:
        """Begin to hand out again from `position`, or from the oldest sample there is."""
        self.release(position)
        taken, self._handed_out = self._handed_out, 0
        if taken and self._chunks[0].start < position:
            first = self._chunks.popleft()
            cut = position - first.start
            self._samples -= cut
            self._chunks.appendleft(replace(first, start=position, pcm=first.pcm[2 * cut :]))
        self._waiting = self._samples

    def leave_out(self, position: int) -> tuple[int, int] | None:
        """Let go of what lies before `position` and has not been taken. Gives its span."""
        left = list(islice(self._chunks, self._handed_out, None))
        out = [chunk for chunk in left if chunk.end <= position]
        if not out:
            return None
        taken = list(islice(self._chunks, self._handed_out))
        self._chunks = deque([*taken, *left[len(out) :]])
        samples = sum(chunk.samples for chunk in out)
        self._samples -= samples
        self._waiting -= samples
        return out[0].start, out[-1].end

    def skip(self) -> tuple[int, int] | None:
        """Give up all that has been taken, or one chunk if none has. Gives its span."""
        if not self._chunks:
            return None
        start = self._chunks[0].start
        end = self._drop().end
        while self._handed_out:
            end = self._drop().end
        return start, end

    def _drop(self) -> Chunk:
        chunk = self._chunks.popleft()
        self._samples -= chunk.samples
        if self._handed_out:
            self._handed_out -= 1
        else:
            self._waiting -= chunk.samples
        return chunk
