"""Keys are kept by the system's keyring, which may lack, be locked, fail or hang."""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Mapping

import keyring
import pytest
from keyring.backend import KeyringBackend
from keyring.backends import fail, null
from keyring.errors import InitError, KeyringLocked, PasswordDeleteError, PasswordSetError

from fakes.virtual_time import run_virtual
from surtitle.core.errors import Decision, OutputError, SurtitleError, UsageError
from surtitle.storage.secrets import Keyring, Secrets

KEY = "sk-SECRET"
NAME = "gpu.home:443"


class FakeKeyring:
    """Keeps what it is given, by service and name; deleting what is not there is an error."""

    def __init__(self) -> None:
        self.kept: dict[tuple[str, str], str] = {}
        self.failure: Exception | None = None
        self.threads: list[threading.Thread] = []

    def get_password(self, service: str, username: str) -> str | None:
        self._meet()
        return self.kept.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self._meet()
        self.kept[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        self._meet()
        if (service, username) not in self.kept:
            raise PasswordDeleteError("not found")
        del self.kept[service, username]

    def _meet(self) -> None:
        self.threads.append(threading.current_thread())
        if self.failure is not None:
            raise self.failure


class HangingKeyring(FakeKeyring):
    """Asks its owner, who is away."""

    def __init__(self) -> None:
        super().__init__()
        self.owner_is_back = threading.Event()

    def _meet(self) -> None:
        super()._meet()
        self.owner_is_back.wait(10.0)


def secrets(
    backend: Keyring | None = None, environment: Mapping[str, str] | None = None
) -> Secrets:
    return Secrets(keyring=lambda: backend, environment=environment or {})


def failure(work: Coroutine[object, object, object], kind: type[SurtitleError]) -> SurtitleError:
    with pytest.raises(kind) as caught:
        asyncio.run(work)
    error = caught.value
    assert "SECRET" not in f"{error}{error!r}{error.__cause__!r}"
    assert error.message.endswith(".")
    assert error.remedy.endswith(".")
    return error


def test_a_key_is_kept_read_replaced_and_forgotten() -> None:
    backend = FakeKeyring()
    kept = secrets(backend)
    assert asyncio.run(kept.read(NAME)) is None
    asyncio.run(kept.write(NAME, f" {KEY}\n"))
    assert backend.kept == {("Surtitle", NAME): KEY}
    assert asyncio.run(kept.read(NAME)) == KEY
    assert asyncio.run(kept.read("other:443")) is None
    asyncio.run(kept.write(NAME, "new"))
    assert asyncio.run(kept.read(NAME)) == "new"
    asyncio.run(kept.delete(NAME))
    asyncio.run(kept.delete(NAME))
    assert asyncio.run(kept.read(NAME)) is None


def test_the_loops_thread_never_waits_for_the_keyring() -> None:
    backend = FakeKeyring()
    asyncio.run(secrets(backend).write(NAME, KEY))
    assert backend.threads
    assert threading.main_thread() not in backend.threads


def test_two_questions_at_once() -> None:
    backend = FakeKeyring()
    backend.kept["Surtitle", NAME] = KEY
    kept = secrets(backend)

    async def work() -> list[str | None]:
        return list(await asyncio.gather(kept.read(NAME), kept.read(NAME)))

    assert asyncio.run(work()) == [KEY, KEY]


def test_a_variable_wins_and_no_keyring_is_asked() -> None:
    backend = FakeKeyring()
    backend.kept["Surtitle", NAME] = "other"
    kept = secrets(backend, {"MY_KEY": f"{KEY}\n"})
    assert asyncio.run(kept.read(NAME, variable="MY_KEY")) == KEY
    assert not backend.threads


@pytest.mark.parametrize(
    ("variable", "environment", "message"),
    [
        ("NONE", {}, "no environment variable"),
        (KEY, {}, "no environment variable"),
        ("", {}, "no environment variable"),
        ("MY_KEY", {"MY_KEY": ""}, "is empty"),
        ("MY_KEY", {"MY_KEY": "SECRET\nSECRET"}, "a space or another character"),
    ],
)
def test_a_variable_that_holds_no_key(
    variable: str, environment: dict[str, str], message: str
) -> None:
    kept = secrets(FakeKeyring(), environment)
    error = failure(kept.read(NAME, variable=variable), UsageError)
    assert message in error.message
    assert (error.field, error.decision) == ("--api-key-env", Decision.RECONFIGURE)


@pytest.mark.parametrize("key", ["", " ", "SECRET SECRET"])
def test_what_is_no_key_is_not_kept(key: str) -> None:
    backend = FakeKeyring()
    failure(secrets(backend).write(NAME, key), UsageError)
    assert not backend.kept


def test_without_a_keyring_there_is_no_key_and_none_can_be_kept() -> None:
    assert asyncio.run(secrets().read(NAME)) is None
    assert "no keyring" in failure(secrets().write(NAME, KEY), OutputError).message
    assert "--api-key-env" in failure(secrets().delete(NAME), OutputError).remedy


ASKED: dict[str, Callable[[Secrets], Coroutine[object, object, object]]] = {
    "read": lambda kept: kept.read(NAME),
    "write": lambda kept: kept.write(NAME, KEY),
    "delete": lambda kept: kept.delete(NAME),
}


@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize(
    "raised",
    [
        KeyringLocked(f"locked {KEY}"),
        InitError("no collection"),
        PasswordSetError(KEY),
        OSError(1312, "no logon session"),
        RuntimeError("bus"),
        StopIteration(),
    ],
)
def test_a_keyring_that_fails(asked: str, raised: Exception) -> None:
    backend = FakeKeyring()
    backend.failure = raised
    error = failure(ASKED[asked](secrets(backend)), OutputError)
    assert "keyring could not be" in error.message
    assert "--api-key-env" in error.remedy


def test_a_keyring_that_cannot_even_be_found() -> None:
    def find() -> Keyring:
        raise ImportError("a backend that the user configured")

    error = failure(Secrets(keyring=find, environment={}).read(NAME), OutputError)
    assert "could not be read (ImportError)" in error.message


@pytest.mark.parametrize("asked", ASKED)
def test_a_keyring_that_hangs_is_left_alone(asked: str) -> None:
    backend = HangingKeyring()
    found: list[threading.Thread] = []

    def find() -> Keyring:
        found.append(threading.current_thread())
        return backend

    kept = Secrets(keyring=find, environment={})

    async def work() -> None:
        loop = asyncio.get_running_loop()
        with pytest.raises(OutputError, match="does not answer"):
            await ASKED[asked](kept)
        assert loop.time() == 5.0
        with pytest.raises(OutputError, match="still does not answer"):
            await ASKED[asked](kept)
        assert loop.time() == 5.0

    run_virtual(work())
    backend.owner_is_back.set()
    for thread in [t for t in threading.enumerate() if t.name == "keyring"]:
        thread.join()
    assert [thread.daemon for thread in found] == [True]


def test_a_keyring_that_answers_again_is_asked_again() -> None:
    backend = HangingKeyring()
    kept = Secrets(keyring=lambda: backend, environment={}, within=0.1)
    failure(kept.read(NAME), OutputError)
    backend.owner_is_back.set()
    for thread in backend.threads:
        thread.join()
    backend.kept["Surtitle", NAME] = KEY
    assert asyncio.run(kept.read(NAME)) == KEY


def _library(backend: KeyringBackend, monkeypatch: pytest.MonkeyPatch) -> Secrets:
    monkeypatch.setattr(keyring.core, "_keyring_backend", backend)
    return Secrets(environment={})


def test_the_librarys_backend_for_no_keyring(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = _library(fail.Keyring(), monkeypatch)  # type: ignore[no-untyped-call] # the library's
    assert asyncio.run(kept.read(NAME)) is None
    assert "no keyring" in failure(kept.write(NAME, KEY), OutputError).message


def test_the_librarys_backend_that_keeps_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = _library(null.Keyring(), monkeypatch)  # type: ignore[no-untyped-call] # the library's
    assert asyncio.run(kept.read(NAME)) is None
    assert "did not keep" in failure(kept.write(NAME, KEY), OutputError).message
