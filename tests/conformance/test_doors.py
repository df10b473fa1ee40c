"""Who is let in, and what those are told who are not."""

from collections.abc import Callable

import pytest

from conformance.servers import BOTH, MODEL, Kind, serving
from conformance.sound import bursts
from conformance.talking import talking, within_limit
from surtitle.core.errors import Decision, EngineError

type Note = Callable[[str, str], None]


@BOTH
@pytest.mark.parametrize(
    ("key", "said"),
    [("", "wants a key (HTTP 401)"), ("wrong", "does not accept the key (HTTP 401)")],
)
def test_a_key_that_does_not_open(kind: Kind, key: str, said: str, note: Note) -> None:
    async def main() -> None:
        async with (
            serving(kind, "KEYED") as server,
            talking(server.url, bursts(1), key=key, model=MODEL),
        ):
            pass

    with pytest.raises(EngineError) as caught:
        within_limit(main())
    error = caught.value
    note(said, str(error))
    assert said in error.message
    assert (error.decision, error.field) == (Decision.RECONFIGURE, "--api-key-env")


@BOTH
def test_the_right_key(kind: Kind, note: Note) -> None:
    sound = bursts(1)

    async def main() -> str:
        async with (
            serving(kind, "KEYED") as server,
            talking(server.url, sound, key=server.key, model=MODEL) as talk,
        ):
            await talk.say()
            await talk.finish()
        assert talk.seen.error is None
        return talk.seen.text

    text = within_limit(main())
    note("words", f"{len(text.split())} words")
    assert text


@BOTH
@pytest.mark.parametrize("path", ["/v1/realtime/", "/v1/audio"])
def test_a_wrong_path(kind: Kind, path: str, note: Note) -> None:
    async def main() -> None:
        async with serving(kind) as server:
            url = server.url.removesuffix("/v1/realtime") + path
            async with talking(url, bursts(1), model=MODEL):
                pass

    with pytest.raises(EngineError) as caught:
        within_limit(main())
    error = caught.value
    note("HTTP 403, the option --url, the path", str(error))
    assert (error.decision, error.field) == (Decision.RECONFIGURE, "--url")
    assert "HTTP 403" in error.message
    assert f"at {path} " in error.message
