"""Keys of speech servers: in the system's keyring, or in a variable that the user names."""

import asyncio
import os
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Protocol

from surtitle.core.errors import Decision, OutputError, UsageError
from surtitle.core.server_address import parse_server_key

__all__ = ["Keyring", "Secrets"]

_SERVICE = "Surtitle"
"""Under which the keyring's own window lists our keys."""
_WITHIN = 5.0
_FIELD = "--api-key-env"
_ELSEWHERE = "Unlock it, or put the key into a variable and name that with --api-key-env."


class Keyring(Protocol):
    """What is used of the `keyring` library's backends. Each call may block or raise anything."""

    def get_password(self, service: str, username: str) -> str | None:
        """The secret, or None."""

    def set_password(self, service: str, username: str, password: str) -> None:
        """Keep a secret."""

    def delete_password(self, service: str, username: str) -> None:
        """Forget a secret that is there."""


class Secrets:
    """The keys, by the name of their server: `ServerAddress.name`.

    Args:
        keyring: Finds the keyring; called where it may block.
        environment: Where the variables are that users name.
        within: Seconds in which the keyring must answer, its owner's password included.
    """

    def __init__(
        self,
        *,
        keyring: Callable[[], Keyring | None] | None = None,
        environment: Mapping[str, str] = os.environ,
        within: float = _WITHIN,
    ) -> None:
        self._keyring = keyring or _system_keyring
        self._environment = environment
        self._within = within
        self._stuck: threading.Thread | None = None

    async def read(self, name: str, *, variable: str | None = None) -> str | None:
        """Return a server's key; None if there is none, or nowhere to keep one.

        Args:
            name: The server's.
            variable: The environment variable that holds it instead. Then no keyring is asked.

        Raises:
            UsageError: There is no such variable, or no key in it.
            OutputError: The keyring is locked, broken, or does not answer.
        """
        if variable is not None:
            value = self._environment.get(variable)
            if value is None:
                # The name is not repeated: some people give the key itself.
                raise UsageError(
                    "There is no environment variable of the name that --api-key-env gives.",
                    remedy="Give the name of the variable, not the key, and export the variable.",
                    decision=Decision.RECONFIGURE,
                    field=_FIELD,
                )
            return parse_server_key(value)
        return await self._ask(
            "read", lambda keyring: keyring.get_password(_SERVICE, name) if keyring else None
        )

    async def write(self, name: str, key: str) -> None:
        """Keep a server's key, in place of the one before.

        Raises:
            UsageError: It is no key.
            OutputError: It could not be kept.
        """
        key = parse_server_key(key)

        def keep(keyring: Keyring | None) -> None:
            if keyring is None:
                raise _nowhere()
            keyring.set_password(_SERVICE, name, key)
            # One of the library's backends takes everything and keeps nothing.
            if keyring.get_password(_SERVICE, name) != key:
                raise _failed("did not keep the key")

        await self._ask("changed", keep)

    async def delete(self, name: str) -> None:
        """Forget a server's key, if there is one. Raises OutputError."""

        def forget(keyring: Keyring | None) -> None:
            if keyring is None:
                raise _nowhere()
            if keyring.get_password(_SERVICE, name) is not None:
                keyring.delete_password(_SERVICE, name)

        await self._ask("changed", forget)

    async def _ask[T](self, done: str, question: Callable[[Keyring | None], T]) -> T:
        """Ask the keyring in a thread: it may ask its owner, or the system's bus, for ever."""
        if self._stuck is not None and self._stuck.is_alive():
            raise _failed("still does not answer")
        loop = asyncio.get_running_loop()
        waiting: asyncio.Future[Callable[[], T]] = loop.create_future()

        def tell(outcome: Callable[[], T]) -> None:
            if not waiting.done():
                waiting.set_result(outcome)

        def run() -> None:
            outcome = _attempt(lambda: question(self._keyring()), done)
            with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                loop.call_soon_threadsafe(tell, outcome)

        # A daemon: the program must be able to end while the keyring hangs.
        thread = threading.Thread(target=run, name="keyring", daemon=True)
        thread.start()
        try:
            async with asyncio.timeout(self._within):
                outcome = await waiting
        except TimeoutError:
            self._stuck = thread
            raise _failed("does not answer") from None
        return outcome()


def _attempt[T](question: Callable[[], T], done: str) -> Callable[[], T]:
    """Ask, and return what returns the answer or raises the error."""
    try:
        answer = question()
    except OutputError as error:
        failure = error
    except Exception as error:  # noqa: BLE001 - backends raise whatever their system raises
        # Not chained: a backend may repeat what it was given. What kind it was harms nobody.
        failure = _failed(f"could not be {done} ({type(error).__name__})")
    else:
        return lambda: answer

    def fail() -> T:
        raise failure

    return fail


def _failed(what: str) -> OutputError:
    return OutputError(f"The system's keyring {what}.", remedy=_ELSEWHERE)


def _nowhere() -> OutputError:
    return OutputError(
        "This system has no keyring to keep the key in.",
        remedy="Put the key into a variable and name that with --api-key-env.",
    )


def _system_keyring() -> Keyring | None:
    """Return the system's keyring, if there is any."""
    import keyring  # noqa: PLC0415 - slow to load, and most people have no speech server
    from keyring.backends import fail  # noqa: PLC0415 - same

    found = keyring.get_keyring()
    return None if isinstance(found, fail.Keyring) else found
