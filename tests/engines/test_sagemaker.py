"""The transport's own waits, bounds and ends, on a jumping clock over a scripted stream."""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes.virtual_time import run_virtual
from surtitle.core.errors import Decision, EngineError, SettingsError
from surtitle.core.sagemaker_target import SageMakerTarget
from surtitle.engines.aws_credentials import Credentials
from surtitle.engines.aws_errors import Answer
from surtitle.engines.sagemaker import Limits, SageMakerTransport

RENEWAL = "Run: aws sso login"
EXPIRES = datetime(2026, 1, 1, tzinfo=UTC)
CREDENTIALS = Credentials(
    access_key="AKID",
    secret_key="secret",  # noqa: S106 - of a test
    expires=EXPIRES,
    renewal=RENEWAL,
)

type Part = tuple[bytes, bool]


class Provider:
    """Gives credentials, after a while or not at all."""

    def __init__(self, *, after: float = 0.0, error: EngineError | None = None) -> None:
        self.after = after
        self.error = error

    async def resolve(self) -> Credentials:
        await asyncio.sleep(self.after)
        if self.error is not None:
            raise self.error
        return CREDENTIALS


class ScriptedStream:
    """As the SDK's: any step may hang, or raise anything; a cancelled `receive` is poison."""

    def __init__(self, **steps: float | Exception) -> None:
        self.steps = steps
        """Seconds until a step is done, or what it raises."""
        self.answer: Answer | None = None
        self.incoming: asyncio.Queue[Part | Exception | None] = asyncio.Queue()
        self.sent: list[bytes] = []
        self.room = asyncio.Event()
        self.room.set()
        self.polite: list[bool] = []
        self.poisoned = False

    async def _step(self, name: str) -> None:
        step = self.steps.get(name, 0.0)
        if isinstance(step, Exception):
            raise step
        await asyncio.sleep(step)

    async def open(self) -> None:
        await self._step("open")

    async def connected(self) -> None:
        await self._step("connected")

    async def answered(self) -> None:
        await self._step("answered")
        self.answer = Answer(status=200)

    async def send(self, payload: bytes) -> None:
        await self.room.wait()
        await self._step("send")
        self.sent.append(payload)

    async def receive(self) -> Part | None:
        if self.poisoned:
            return None
        try:
            coming = await self.incoming.get()
        except asyncio.CancelledError:
            self.poisoned = True
            raise
        if isinstance(coming, Exception):
            raise coming
        return coming

    async def close(self, *, polite: bool) -> None:
        self.polite.append(polite)
        await self._step("close")
        self.incoming.put_nowait(None)

    def say(self, *texts: str) -> None:
        for text in texts:
            self.incoming.put_nowait((text.encode(), False))


def target(**values: str) -> SageMakerTarget:
    # Nobody listens there: finding out about a certificate ends at once.
    here = {"endpoint": "voxtral", "region": "eu-west-1", "endpoint_url": "https://127.0.0.1:9"}
    return SageMakerTarget(**(here | values))


def transport(
    stream: ScriptedStream, provider: Provider | None = None, limits: Limits | None = None
) -> SageMakerTransport:
    def connect(_: SageMakerTarget, credentials: Credentials, __: bytes | None) -> ScriptedStream:
        assert credentials is CREDENTIALS
        return stream

    return SageMakerTransport(
        target(), credentials=provider or Provider(), connect=connect, limits=limits
    )


def with_transport(
    use: Callable[[SageMakerTransport, ScriptedStream], Awaitable[None]],
    *,
    limits: Limits | None = None,
    **steps: float | Exception,
) -> ScriptedStream:
    """Open a transport, use it, close it twice; the guards see to what is left."""
    made: list[ScriptedStream] = []

    async def main() -> None:
        stream = ScriptedStream(**steps)
        made.append(stream)
        under_test = transport(stream, limits=limits)
        await under_test.open()
        await use(under_test, stream)
        await under_test.close()
        await under_test.close()
        assert len(stream.polite) == 1

    run_virtual(main())
    return made[0]


def failing_to_open(provider: Provider | None = None, **steps: float | Exception) -> EngineError:
    """Open, which must fail within 15 s and leave nothing."""

    async def main() -> EngineError:
        loop = asyncio.get_running_loop()
        stream = ScriptedStream(**steps)
        under_test = transport(stream, provider)
        begun = loop.time()
        with pytest.raises(EngineError) as caught:
            await under_test.open()
        assert loop.time() - begun <= 15.0
        for call in (under_test.receive(), under_test.send("x")):
            with pytest.raises(EngineError):
                await call
        await under_test.close()
        assert stream.polite in ([], [False])
        return caught.value

    return run_virtual(main(), limit=60)


def test_text_goes_both_ways_in_order() -> None:
    async def use(under_test: SageMakerTransport, stream: ScriptedStream) -> None:
        stream.say("one", "", "dr\N{LATIN SMALL LETTER E WITH DIAERESIS}i")
        for text in ("a", "", "\N{SNOWMAN}"):
            await under_test.send(text)
        assert [await under_test.receive() for _ in range(3)] == ["one", "", "drëi"]
        assert under_test.expires == EXPIRES

    stream = with_transport(use)
    assert stream.sent == [b"a", b"", "\N{SNOWMAN}".encode()]
    assert stream.polite == [True]


def test_where_the_sound_goes() -> None:
    assert SageMakerTransport(target()).place == "to voxtral at 127.0.0.1"
    assert SageMakerTransport(target(endpoint_url="")).place == (
        "to voxtral on SageMaker in eu-west-1"
    )


@given(st.lists(st.tuples(st.text(max_size=8), st.lists(st.integers(0, 30), max_size=3))))
def test_parts_are_joined_as_bytes_wherever_they_are_split(
    frames: list[tuple[str, list[int]]],
) -> None:
    async def use(under_test: SageMakerTransport, stream: ScriptedStream) -> None:
        for text, cuts in frames:
            data = text.encode()
            edges = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
            parts = [data[a:b] for a, b in pairwise(edges)]
            for part in parts[:-1]:
                stream.incoming.put_nowait((part, True))
            stream.incoming.put_nowait((parts[-1], False))
        assert [await under_test.receive() for _ in frames] == [text for text, _ in frames]

    with_transport(use)


@pytest.mark.parametrize(
    ("steps", "decision", "words"),
    [
        ({"open": 1e9}, Decision.RETRY, "No secure connection"),
        ({"connected": 1e9}, Decision.RETRY, "No secure connection"),
        ({"answered": 1e9}, Decision.RETRY, "does not answer"),
        ({"open": RuntimeError()}, Decision.RETRY, "broke"),
        ({"connected": KeyError("x")}, Decision.RETRY, "(x)"),
        ({"answered": ConnectionAbortedError()}, Decision.RETRY, "broke"),
        ({"open": 1e9, "close": 2.0}, Decision.RETRY, "No secure connection"),
        ({"open": 5.9, "connected": 1e9}, Decision.RETRY, "No secure connection"),
        ({"connected": 5.9, "answered": 1e9, "close": 2.0}, Decision.RETRY, "does not answer"),
    ],
)
def test_what_does_not_come_about_is_told_in_time(
    steps: dict[str, float | Exception], decision: Decision, words: str
) -> None:
    error = failing_to_open(None, **steps)
    assert error.decision is decision
    assert words in str(error)


def test_credentials_that_do_not_come_are_told_in_time() -> None:
    error = failing_to_open(Provider(after=1e9))
    assert "credentials" in str(error)
    assert error.decision is Decision.RETRY
    late = failing_to_open(Provider(after=9.5), connected=5.0, answered=1e9, close=2.0)
    assert late.decision is Decision.RETRY


def test_credentials_that_cannot_be_had_are_told_as_they_are() -> None:
    wanted = EngineError("None.", remedy=RENEWAL, decision=Decision.RECONFIGURE)
    assert failing_to_open(Provider(error=wanted)) is wanted


@pytest.mark.parametrize(
    ("coming", "words"),
    [
        (None, "has ended"),
        (RuntimeError(), "broke"),
        ((b"\xff", False), "no text"),
        ((b"x" * (1 << 20), True), "more than can be taken"),
    ],
)
def test_the_end_comes_after_what_was_received(coming: Part | Exception | None, words: str) -> None:
    async def use(under_test: SageMakerTransport, stream: ScriptedStream) -> None:
        stream.say("last words")
        stream.incoming.put_nowait(coming)
        if isinstance(coming, tuple):
            stream.incoming.put_nowait((b"x", False))
        await asyncio.sleep(1)
        assert await under_test.receive() == "last words"
        for _ in range(2):
            with pytest.raises(EngineError, match=words) as caught:
                await under_test.receive()
            assert caught.value.decision is Decision.RETRY
        with pytest.raises(EngineError, match=words):
            await under_test.send("more")
        assert stream.sent == []

    # Nothing is said to the other side of a stream that is dead: it would be for ever.
    assert with_transport(use).polite == [False]


def test_bytes_that_are_no_text_are_not_in_the_error() -> None:
    async def use(under_test: SageMakerTransport, stream: ScriptedStream) -> None:
        stream.incoming.put_nowait((b"words of somebody \xff", False))
        with pytest.raises(EngineError) as caught:
            await under_test.receive()
        assert caught.value.__cause__ is None
        assert "words of" not in str(caught.value)

    with_transport(use)


def test_the_end_wakes_whoever_waits_for_room_at_once() -> None:
    async def use(under_test: SageMakerTransport, stream: ScriptedStream) -> None:
        stream.room.clear()
        loop = asyncio.get_running_loop()
        begun = loop.time()
        loop.call_later(1.0, stream.incoming.put_nowait, None)
        with pytest.raises(EngineError, match="has ended"):
            await under_test.send("x")
        assert loop.time() - begun == pytest.approx(1.0)

    with_transport(use)


def test_no_room_for_too_long_is_the_end() -> None:
    async def use(under_test: SageMakerTransport, stream: ScriptedStream) -> None:
        stream.room.clear()
        loop = asyncio.get_running_loop()
        begun = loop.time()
        with pytest.raises(EngineError, match="has taken no sound") as caught:
            await under_test.send("x")
        assert caught.value.decision is Decision.RETRY
        assert loop.time() - begun == pytest.approx(5.0)
        stream.room.set()
        with pytest.raises(EngineError, match="has taken no sound"):
            await under_test.send("y")
        assert stream.sent == []

    with_transport(use)


def test_a_frame_given_up_half_way_ends_the_stream() -> None:
    """It is signed already, and every later signature builds on it."""

    async def use(under_test: SageMakerTransport, stream: ScriptedStream) -> None:
        stream.room.clear()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1):
                await under_test.send("x")
        stream.room.set()
        with pytest.raises(EngineError):
            await under_test.send("y")
        assert stream.sent == []

    with_transport(use)


def test_an_error_of_sending_is_the_end() -> None:
    async def use(under_test: SageMakerTransport, stream: ScriptedStream) -> None:
        with pytest.raises(EngineError, match="broke") as caught:
            await under_test.send("x")
        assert isinstance(caught.value.__cause__, OSError)
        with pytest.raises(EngineError, match="broke"):
            await under_test.receive()
        assert stream.sent == []

    with_transport(use, send=OSError("Failed to write to stream."))


@pytest.mark.parametrize("steps", range(8))
def test_receiving_may_be_cancelled_at_any_step_and_loses_nothing(steps: int) -> None:
    async def use(under_test: SageMakerTransport, stream: ScriptedStream) -> None:
        got = []
        for number in range(3):
            receiving = asyncio.create_task(under_test.receive())
            await asyncio.sleep(1)
            stream.say(str(number))
            for _ in range(steps):
                await asyncio.sleep(0)
            receiving.cancel()
            with suppress(asyncio.CancelledError):
                got.append(await receiving)
        while len(got) < 3:
            got.append(await under_test.receive())
        assert got == ["0", "1", "2"]
        assert not stream.poisoned

    with_transport(use)


def test_the_end_wakes_whoever_waits_for_a_frame() -> None:
    async def use(under_test: SageMakerTransport, stream: ScriptedStream) -> None:
        receiving = asyncio.create_task(under_test.receive())
        await asyncio.sleep(1)
        await under_test.close()
        with pytest.raises(EngineError, match="was closed"):
            await receiving
        assert not stream.poisoned

    with_transport(use)


def test_frames_that_nobody_takes_are_bounded() -> None:
    async def use(under_test: SageMakerTransport, stream: ScriptedStream) -> None:
        stream.say(*map(str, range(10)))
        await asyncio.sleep(1)
        assert [await under_test.receive() for _ in range(4)] == ["0", "1", "2", "3"]
        with pytest.raises(EngineError, match="more than can be taken") as caught:
            await under_test.receive()
        assert caught.value.decision is Decision.RETRY

    with_transport(use, limits=Limits(frames=4))


def test_closing_while_it_opens_ends_the_opening() -> None:
    async def main() -> None:
        stream = ScriptedStream(answered=5.0)
        under_test = transport(stream)
        opening = asyncio.create_task(under_test.open())
        await asyncio.sleep(1)
        await under_test.close()
        with pytest.raises(EngineError, match="was closed"):
            await opening
        assert under_test._receiver is None
        assert stream.polite == [False]

    run_virtual(main())


@pytest.mark.parametrize("after", [0.0, 1.0])
def test_opening_may_be_cancelled(after: float) -> None:
    async def main() -> None:
        stream = ScriptedStream(connected=3.0)
        under_test = transport(stream, Provider(after=0.5))
        opening = asyncio.create_task(under_test.open())
        await asyncio.sleep(after)
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening
        await under_test.close()

    run_virtual(main())


def test_closing_goes_on_when_whoever_waits_for_it_gives_up() -> None:
    async def use(under_test: SageMakerTransport, stream: ScriptedStream) -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.5):
                await under_test.close()
        await under_test.close()
        assert stream.polite == [True]

    with_transport(use, close=1.5)


def test_closing_what_was_never_opened() -> None:
    async def main() -> None:
        under_test = transport(ScriptedStream())
        with pytest.raises(EngineError, match="is not open"):
            await under_test.receive()
        with pytest.raises(EngineError, match="is not open"):
            await under_test.send("x")
        await under_test.close()
        with pytest.raises(EngineError, match="was closed"):
            await under_test.open()

    run_virtual(main())


def test_a_receiver_that_does_not_end_with_the_connection_is_cancelled() -> None:
    class Stuck(ScriptedStream):
        async def close(self, *, polite: bool) -> None:
            self.polite.append(polite)

    async def main() -> None:
        loop = asyncio.get_running_loop()
        stream = Stuck()
        under_test = transport(stream)
        await under_test.open()
        begun = loop.time()
        await under_test.close()
        assert loop.time() - begun < 1.0

    run_virtual(main())


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "cannot be read"),
        (b"", "no certificates"),
        (b"hello", "no certificates"),
        (b"-----BEGIN CERTIFICATE-----\nhello\n-----END CERTIFICATE-----\n", "no certificates"),
        (b"\xff\xfe", "no certificates"),
    ],
)
def test_a_file_of_authorities_that_cannot_be_used(
    tmp_path: Path, content: bytes | None, words: str
) -> None:
    path = tmp_path / "ca.pem"
    if content is not None:
        path.write_bytes(content)

    async def main() -> None:
        under_test = SageMakerTransport(target(ca_bundle=str(path)), credentials=Provider())
        with pytest.raises(SettingsError, match=words) as caught:
            await under_test.open()
        assert caught.value.field == "--ca-bundle"
        assert caught.value.exit_code == 2
        await under_test.close()

    run_virtual(main())


def test_without_the_sdk_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "surtitle.engines.sagemaker_sdk", None)

    async def main() -> None:
        under_test = SageMakerTransport(target(), credentials=Provider())
        with pytest.raises(EngineError, match="not installed") as caught:
            await under_test.open()
        assert "surtitle[aws]" in caught.value.remedy
        await under_test.close()

    run_virtual(main())
