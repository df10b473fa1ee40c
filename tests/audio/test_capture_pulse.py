"""Capture for real: a PulseAudio of our own, played into and unplugged while we listen."""

import asyncio
import subprocess
import wave
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from fakes.pulse import MIC, MIC_SINK, OTHER_SINK, SINK, PrivatePulse, private_pulse
from surtitle.audio.capture import measure, open_source
from surtitle.audio.control import ControlThread
from surtitle.audio.devices import Device, Kind, SoundSystem, choose, list_devices
from surtitle.audio.portaudio import HUSH, PortAudio
from surtitle.core.audio import Block, Format, Gap, Lost, Moved, SourceEvent, Started

type Samples = npt.NDArray[np.float64]

RATE = 48_000
LIMIT = 20.0


@pytest.fixture(scope="module")
def pulse() -> Iterator[PrivatePulse]:
    """Return a server for all that leave it as they find it."""
    with private_pulse() as server:
        yield server


@pytest.fixture
def own_pulse() -> Iterator[PrivatePulse]:
    """Return a server of its own, for who takes something away from it."""
    with private_pulse() as server:
        yield server


@pytest.fixture
def system() -> Iterator[SoundSystem]:
    control = ControlThread(on_abandon=HUSH.restore)
    yield SoundSystem(portaudio=PortAudio(), control=control)
    control.stop()


def write_noise(path: Path, seconds: int) -> Samples:
    """Write noise bursts as a stereo file, and return them as samples."""
    chance = np.random.default_rng(7)
    loudness = np.repeat(chance.uniform(0.05, 0.3, size=10 * seconds), RATE // 10)
    samples = (chance.uniform(-1, 1, size=seconds * RATE) * loudness * 32_767).astype("<i2")
    with wave.open(str(path), "wb") as file:
        file.setnchannels(2)
        file.setsampwidth(2)
        file.setframerate(RATE)
        file.writeframes(np.repeat(samples, 2).tobytes())
    return samples.astype(np.float64)


@pytest.fixture
def noise(tmp_path: Path) -> tuple[Path, Samples]:
    """Return a second of noise, as a file and as samples."""
    path = tmp_path / "noise.wav"
    return path, write_noise(path, 1)


def scene(work: Callable[[], Awaitable[None]]) -> None:
    async def run() -> None:
        async with asyncio.timeout(LIMIT):
            await work()

    asyncio.run(run())


@asynccontextmanager
async def listening(
    system: SoundSystem, kind: Kind, wanted: str | None = None
) -> AsyncIterator[AsyncIterator[SourceEvent]]:
    device = choose(await list_devices(system=system), kind, wanted)
    source = open_source(device, follow_default=wanted is None, system=system)
    async with aclosing(source.events()) as events:
        yield events


async def until[E: (Started, Lost, Moved)](events: AsyncIterator[SourceEvent], kind: type[E]) -> E:
    async for event in events:
        if isinstance(event, kind):
            return event
        assert not isinstance(event, Lost), event
    raise AssertionError(f"it ended without {kind.__name__}")


async def hear(
    events: AsyncIterator[SourceEvent],
    layout: Format,
    seconds: float,
    *,
    after: subprocess.Popen[bytes] | None = None,
) -> Samples:
    """Return what comes, mixed down, zeros for gaps: so many seconds after a player's end."""
    parts: list[Samples] = []
    frames = 0
    async for event in events:
        match event:
            case Block(pcm=pcm):
                samples = np.frombuffer(pcm, dtype="<i2").reshape(-1, layout.channels)
                parts.append(samples.mean(axis=1))
            case Gap(frames=missing):
                parts.append(np.zeros(missing))
            case _:
                raise AssertionError(event)
        if after is None or after.poll() is not None:
            frames += len(parts[-1])
        if frames >= seconds * layout.rate:
            break
    return np.concatenate(parts)


def correlations(sent: Samples, got: Samples) -> list[float]:
    """Return how alike they are in windows of 0.25 s at the one offset that fits best."""
    size = len(sent) + len(got)
    product = np.fft.rfft(got, size) * np.conj(np.fft.rfft(sent, size))
    offset = int(np.argmax(np.fft.irfft(product, size)[: len(got)]))
    window = RATE // 4
    whole = min(len(sent), len(got) - offset) // window
    return [
        float(np.corrcoef(sent[i : i + window], got[offset + i : offset + i + window])[0, 1])
        for i in range(0, whole * window, window)
    ]


def test_devices_have_the_servers_names(pulse: PrivatePulse, system: SoundSystem) -> None:
    del pulse

    async def work() -> None:
        found = await list_devices(system=system)
        assert found == [
            Device(
                id=name, kind=kind, name=description, default=default, rate=rate, channels=channels
            )
            for name, kind, description, default, rate, channels in (
                (MIC, Kind.MIC, "Table-microphone", True, 48_000, 1),
                (SINK, Kind.SYSTEM, "Loudspeakers", True, 48_000, 2),
                (OTHER_SINK, Kind.SYSTEM, "Headphones", False, 44_100, 2),
                (MIC_SINK, Kind.SYSTEM, "Mouth", False, 48_000, 1),
            )
        ]

    scene(work)


@pytest.mark.parametrize(("kind", "sink"), [(Kind.SYSTEM, SINK), (Kind.MIC, MIC_SINK)])
def test_what_is_played_is_what_is_captured(
    pulse: PrivatePulse,
    system: SoundSystem,
    noise: tuple[Path, Samples],
    kind: Kind,
    sink: str,
) -> None:
    path, sent = noise

    async def work() -> None:
        async with listening(system, kind) as events:
            started = await until(events, Started)
            player = pulse.play(path, sink=sink)
            got = await hear(events, started.format, 0.3, after=player)
        alike = correlations(sent, got)
        assert len(alike) >= 3  # of 4: all but a rest arrived
        assert min(alike) >= 0.9

    scene(work)


def test_another_output_is_not_heard(
    pulse: PrivatePulse, system: SoundSystem, noise: tuple[Path, Samples]
) -> None:
    path, sent = noise

    async def work() -> None:
        async with listening(system, Kind.SYSTEM, "Mouth") as events:
            started = await until(events, Started)
            player = pulse.play(path, sink=SINK)
            got = await hear(events, started.format, 0.3, after=player)
        assert len(got) >= len(sent)
        assert not got.any()

    scene(work)


def test_it_goes_along_with_the_default(
    own_pulse: PrivatePulse, system: SoundSystem, noise: tuple[Path, Samples]
) -> None:
    path, sent = noise

    async def work() -> None:
        async with listening(system, Kind.SYSTEM) as events:
            started = await until(events, Started)
            await asyncio.to_thread(own_pulse.pactl, "set-default-sink", MIC_SINK)
            assert await until(events, Moved) == Moved(name="Mouth")
            player = own_pulse.play(path, sink=MIC_SINK)
            got = await hear(events, started.format, 0.3, after=player)
            assert min(correlations(sent, got)) >= 0.9
            await asyncio.to_thread(own_pulse.unplug, MIC_SINK)
            assert (await until(events, Moved)).name in {"Loudspeakers", "Headphones"}

    scene(work)


def test_a_named_output_that_is_unplugged_is_lost_not_replaced(
    own_pulse: PrivatePulse, system: SoundSystem
) -> None:
    async def work() -> None:
        async with listening(system, Kind.SYSTEM, "Mouth") as events:
            await until(events, Started)
            await asyncio.to_thread(own_pulse.unplug, MIC_SINK)
            lost = await until(events, Lost)
            assert "Mouth" in str(lost.error)

    scene(work)


def test_a_stream_that_was_moved_away_is_moved_back(
    pulse: PrivatePulse, system: SoundSystem
) -> None:
    async def work() -> None:
        async with listening(system, Kind.SYSTEM, "Headphones") as events:
            started = await until(events, Started)
            outputs = await asyncio.to_thread(pulse.pactl, "list", "short", "source-outputs")
            ours = next(line.split() for line in outputs.splitlines() if "protocol-native" in line)
            right = ours[1]
            await asyncio.to_thread(pulse.pactl, "move-source-output", ours[0], f"{SINK}.monitor")
            now = ""
            while now != right:
                await hear(events, started.format, 0.1)
                outputs = await asyncio.to_thread(pulse.pactl, "list", "short", "source-outputs")
                now = next(
                    line.split()[1] for line in outputs.splitlines() if line.startswith(ours[0])
                )

    scene(work)


def test_a_killed_server_is_lost_within_two_seconds(
    own_pulse: PrivatePulse, system: SoundSystem
) -> None:
    async def work() -> None:
        async with listening(system, Kind.SYSTEM) as events:
            await until(events, Started)
            await asyncio.to_thread(own_pulse.end)
            async with asyncio.timeout(2):
                await until(events, Lost)
        assert await list_devices(system=system) == []

    scene(work)


def test_the_level_tells_silence_from_sound(
    pulse: PrivatePulse, system: SoundSystem, tmp_path: Path
) -> None:
    path = tmp_path / "noise.wav"
    write_noise(path, 30)  # longer than the test

    async def work() -> None:
        devices = await list_devices(system=system)
        loud, quiet = [choose(devices, Kind.SYSTEM, name) for name in ("Loudspeakers", "Mouth")]
        assert await measure(quiet, 0.1, system=system) == -120.0
        player = pulse.play(path, sink=SINK)
        try:
            while not await asyncio.to_thread(pulse.pactl, "list", "short", "sink-inputs"):
                pass  # the player has not begun; asking takes its time
            assert -40 < await measure(loud, 0.5, system=system) < 0
        finally:
            player.terminate()
            await asyncio.to_thread(player.wait, LIMIT)

    scene(work)


def test_closing_at_any_moment_ends_only_the_source(
    pulse: PrivatePulse, system: SoundSystem
) -> None:
    async def work() -> None:
        device = choose(await list_devices(system=system), Kind.SYSTEM, SINK)
        for turns in range(6):
            source = open_source(device, system=system)
            async with aclosing(source.events()) as events:
                async for event in events:
                    if isinstance(event, Started):
                        break
            for _ in range(turns):  # libpulse once ended the whole program here
                await asyncio.sleep(0)
            await source.close()

    assert pulse.pactl("info")
    scene(work)
