from collections.abc import Callable
from dataclasses import dataclass

import pytest

from surtitle.core.errors import EngineError, SourceError
from surtitle.core.health import Health, Look, State, Status

BROKEN = EngineError("The engine broke.", remedy="Run: surtitle doctor")
GONE = SourceError("The microphone is gone.", remedy="Plug it in.")

type Deed = Callable[[Health, float], object]


def sound(health: Health, now: float) -> None:
    health.frames(now, level=-40.0)


def zeros(health: Health, now: float) -> None:
    health.frames(now, level=-120.0)


def speech(health: Health, now: float) -> None:
    health.frames(now, level=-20.0)
    health.voice(now, 0.5)


def no_speech(health: Health, now: float) -> None:
    health.frames(now, level=-40.0)
    health.voice(now, 0.49)


def text(health: Health, now: float) -> None:
    health.text(now)


def ready(health: Health, _: float) -> None:
    health.ready()


def progress(health: Health, _: float) -> None:
    health.progress()


def broken(health: Health, _: float) -> None:
    health.broken(BROKEN)


def failed(health: Health, _: float) -> None:
    health.failed(GONE)


def ended(health: Health, _: float) -> None:
    health.ended()


def late(seconds: float) -> Deed:
    return lambda health, _: health.behind(seconds)


@dataclass(frozen=True, slots=True)
class During:
    """A deed ten times a second, from one moment up to another."""

    deed: Deed
    begin: float
    end: float


@dataclass(frozen=True, slots=True)
class At:
    deed: Deed
    moment: float


def status(
    *deeds: During | At,
    now: float,
    began: float = 0.0,
    microphone: bool = True,
    live: bool = True,
) -> Status:
    health = Health(
        began,
        source="Headset",
        engine="Tiny",
        place="on this computer",
        live=live,
        microphone=microphone,
    )
    todo: list[tuple[float, Deed]] = []
    for deed in deeds:
        match deed:
            case At(deed=one, moment=moment):
                todo.append((moment, one))
            case During(deed=one, begin=begin, end=end):
                count = round((end - begin) * 10)
                todo += [(begin + number / 10, one) for number in range(count + 1)]
    for moment, one in sorted(todo, key=lambda item: item[0]):
        one(health, moment)
    return health.status(now)


READY = At(ready, 0.0)
HISS = During(sound, 0.0, 60.0)


@pytest.mark.parametrize(
    ("deeds", "now", "state"),
    [
        pytest.param([], 0.0, State.STARTING, id="just begun"),
        pytest.param([HISS], 30.0, State.STARTING, id="the engine loads"),
        pytest.param([READY], 1.9, State.LISTENING, id="no frames yet"),
        pytest.param([READY], 2.0, State.NO_SOUND, id="no frames at all"),
        pytest.param([], 2.0, State.NO_SOUND, id="no frames and no engine"),
        pytest.param([READY, During(sound, 0, 5)], 6.9, State.LISTENING, id="frames until now"),
        pytest.param([READY, During(sound, 0, 5)], 7.0, State.NO_SOUND, id="frames stop"),
        pytest.param(
            [READY, During(sound, 0, 5), During(sound, 9, 10)], 10, State.LISTENING, id="come back"
        ),
        pytest.param([READY, During(zeros, 0, 9)], 1.9, State.LISTENING, id="a moment of zeros"),
        pytest.param([READY, During(zeros, 0, 9)], 2.0, State.NO_SOUND, id="zeros"),
        pytest.param(
            [READY, During(sound, 0, 5), During(zeros, 5.1, 9)], 7, State.NO_SOUND, id="muted"
        ),
        pytest.param(
            [READY, During(zeros, 0, 70), At(sound, 70.1)], 70.2, State.LISTENING, id="unmuted"
        ),
        pytest.param([READY, HISS, During(no_speech, 0, 9)], 9.0, State.LISTENING, id="a room"),
        pytest.param([READY, HISS, During(speech, 5, 6)], 6.0, State.WORKING, id="speech"),
        pytest.param([READY, HISS, During(speech, 5, 6)], 10.0, State.WORKING, id="a pause"),
        pytest.param([READY, HISS, During(speech, 5, 6)], 10.1, State.LISTENING, id="silence"),
        pytest.param([READY, HISS, At(text, 5)], 9.0, State.WORKING, id="words"),
        pytest.param([READY, HISS, At(text, 5)], 9.1, State.LISTENING, id="words long ago"),
        pytest.param([READY, During(speech, 0, 4)], 4.0, State.WORKING, id="words may come"),
        pytest.param([READY, During(speech, 0, 4.2)], 4.2, State.DELAYED, id="no words come"),
        pytest.param(
            [READY, HISS, *(During(speech, n, n + 1) for n in range(1, 20, 3))],
            *(15.0, State.DELAYED),
            id="no words come of speech with pauses",
        ),
        pytest.param(
            [READY, During(speech, 0, 9), At(text, 4.5)], 8.4, State.WORKING, id="words came"
        ),
        pytest.param(
            [READY, During(speech, 0, 9), At(text, 4.5)], 9.0, State.DELAYED, id="then no more"
        ),
        pytest.param(
            [READY, HISS, During(speech, 1, 5), At(text, 5), At(speech, 5.1), At(speech, 9.05)],
            *(9.1, State.WORKING),
            id="a pause is no speech without words",
        ),
        pytest.param([READY, HISS, At(late(4.0), 1)], 1.0, State.LISTENING, id="a little behind"),
        pytest.param([READY, HISS, At(late(4.1), 1)], 1.0, State.DELAYED, id="far behind"),
        pytest.param(
            [READY, HISS, At(late(9), 1), At(late(1), 2)], 2.0, State.LISTENING, id="caught up"
        ),
        pytest.param([READY, HISS, At(broken, 1)], 30.0, State.RECOVERING, id="broken"),
        pytest.param([At(broken, 1)], 30.0, State.RECOVERING, id="broken, and no sound"),
        pytest.param(
            [READY, HISS, At(broken, 1), At(ready, 2)], 3.0, State.RECOVERING, id="begun again"
        ),
        pytest.param(
            [READY, HISS, At(broken, 1), At(progress, 2)], 3.0, State.LISTENING, id="does its work"
        ),
        pytest.param(
            [READY, HISS, At(broken, 1), At(text, 2)], 3.0, State.WORKING, id="words again"
        ),
        pytest.param([READY, HISS, At(failed, 1)], 3.0, State.FAILED, id="failed"),
        pytest.param(
            [READY, HISS, At(failed, 1), At(text, 2), At(progress, 2), At(broken, 2)],
            *(3.0, State.FAILED),
            id="the last words do not undo a failure",
        ),
        pytest.param([READY, At(failed, 1), At(ended, 2)], 3.0, State.FAILED, id="failed and over"),
        pytest.param([READY, HISS, At(ended, 1)], 30.0, State.ENDED, id="over"),
        pytest.param([READY, At(broken, 1), At(ended, 1)], 30.0, State.ENDED, id="over, broken"),
    ],
)
@pytest.mark.parametrize("began", [0.0, 1e6])
def test_what_is_told(deeds: list[During | At], now: float, state: State, began: float) -> None:
    moved = [
        During(deed.deed, deed.begin + began, deed.end + began)
        if isinstance(deed, During)
        else At(deed.deed, deed.moment + began)
        for deed in deeds
    ]
    # Sound after the moment of looking does not count.
    got = status(*_until(moved, now + began), now=now + began, began=began)
    assert got.state is state


def _until(deeds: list[During | At], now: float) -> list[During | At]:
    kept: list[During | At] = []
    for deed in deeds:
        if isinstance(deed, During):
            kept += [During(deed.deed, deed.begin, min(deed.end, now))] * (deed.begin <= now)
        else:
            kept += [deed] * (deed.moment <= now)
    return kept


def test_zeros_of_the_computers_own_sound_are_silence() -> None:
    got = status(READY, During(zeros, 0, 60), now=60, microphone=False)
    assert got.state is State.LISTENING


def test_a_file_may_be_read_in_bursts() -> None:
    assert status(READY, now=60, live=False).state is State.LISTENING
    assert status(READY, During(zeros, 0, 9), now=60, live=False).state is State.LISTENING


@pytest.mark.parametrize(
    ("state", "look"),
    [
        (State.STARTING, Look.SILENT),
        (State.LISTENING, Look.SILENT),
        (State.PAUSED, Look.SILENT),
        (State.ENDED, Look.SILENT),
        (State.WORKING, Look.WORKING),
        (State.DELAYED, Look.WORKING),
        (State.RECOVERING, Look.FAILED),
        (State.NO_SOUND, Look.FAILED),
        (State.FAILED, Look.FAILED),
    ],
)
def test_each_state_has_one_of_three_looks(state: State, look: Look) -> None:
    assert Status(state=state, message="").look is look


def test_every_state_has_a_look() -> None:
    assert {Status(state=state, message="").look for state in State} == set(Look)


@pytest.mark.parametrize(
    ("deeds", "now", "message", "remedy"),
    [
        ([], 5.0, "No sound arrives from Headset.", "connected"),
        ([During(zeros, 0, 5)], 5.0, "Headset is muted", "Unmute"),
        ([HISS, At(broken, 1), At(late(12.3), 1)], 9.0, "nothing is lost, 12 s behind", "doctor"),
        ([HISS, At(failed, 1)], 9.0, "The microphone is gone.", "Plug it in."),
        ([READY, HISS, At(late(12.3), 1)], 9.0, "12 s behind, catching up", ""),
        ([READY, HISS], 9.0, "no speech yet", ""),
        ([READY, HISS, At(text, 1)], 9.0, "Listening", ""),
    ],
)
def test_words_say_what_is_wrong_and_what_to_do(
    deeds: list[During | At], now: float, message: str, remedy: str
) -> None:
    got = status(*deeds, now=now)
    assert message in got.message
    assert remedy in got.remedy
    assert bool(remedy) == bool(got.remedy)


def test_a_status_says_what_is_heard_by_what_and_where() -> None:
    health = Health(0.0, source="Headset", engine="Tiny", place="on this computer")
    health.frames(0.1, level=-33.0)
    health.behind(1.5)
    health.source = "Speakers"
    got = health.status(0.2)
    assert (got.source, got.engine, got.place) == ("Speakers", "Tiny", "on this computer")
    assert (got.level, got.behind) == (-33.0, 1.5)


def _health() -> Health:
    return Health(0.0, source="Headset", engine="Voxtral", place="gpu.home", live=False)


def test_it_names_the_engine_that_serves() -> None:
    health = _health()
    assert (health.status(1).engine, health.status(1).place) == ("Voxtral", "gpu.home")
    health.served(engine="Tiny", place="on this computer")
    assert (health.status(2).engine, health.status(2).place) == ("Tiny", "on this computer")


def test_it_counts_the_breaks() -> None:
    health = _health()
    for number in range(3):
        assert health.status(number).breaks == number
        health.broken(BROKEN)
        health.progress()


@pytest.mark.parametrize(
    ("lost", "says"),
    [
        (0.0, "nothing is lost"),
        (0.02, "1 s are lost"),
        (1.4, "1 s are lost"),
        (61.0, "61 s are lost"),
    ],
)
def test_it_says_how_much_is_lost(lost: float, says: str) -> None:
    health = _health()
    health.broken(BROKEN)
    health.behind(12.0, heard=30.0, lost=lost)
    status = health.status(1)
    assert status.lost == lost
    assert says in status.message
    assert "12 s behind" in status.message
