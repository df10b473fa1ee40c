"""Why nothing can listen somewhere, in a sentence each."""

import asyncio
import errno
import os
import socket

import pytest

from surtitle.core.errors import UsageError
from surtitle.server.options import (
    cannot_listen,
    check_limit,
    check_place,
    is_loopback,
    listen,
)


@pytest.mark.parametrize(
    ("error", "code", "field", "words"),
    [
        (errno.EADDRINUSE, 1, "--port", "Port 80 of ::1 is taken"),
        (errno.EADDRNOTAVAIL, 2, "--host", "::1 is no address of this computer."),
        (errno.EACCES, 2, "--port", "You may not listen at port 80."),
        (errno.EMFILE, 1, "--port", "Nothing can listen at ::1, port 80: too many open files."),
    ],
)
def test_what_the_system_says(error: int, code: int, field: str, words: str) -> None:
    told = cannot_listen(OSError(error, os.strerror(error)), "::1", 80)
    assert (told.exit_code, told.field) == (code, field)
    assert words in told.message
    assert told.remedy


@pytest.mark.parametrize(
    "error",
    [socket.gaierror(socket.EAI_NONAME, "not known"), UnicodeError("label too long")],
)
def test_a_host_that_nobody_knows(error: OSError | UnicodeError) -> None:
    told = cannot_listen(error, "x.invalid", 80)
    assert isinstance(told, UsageError)
    assert (told.field, told.message) == ("--host", "The host x.invalid is not known.")


def test_asyncio_tells_without_a_number_that_no_address_was_ours() -> None:
    told = cannot_listen(OSError("could not bind on any address out of []"), "192.0.2.1", 80)
    assert told.message == "192.0.2.1 is no address of this computer."


@pytest.mark.parametrize(("host", "alone"), [
    ("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("localhost", True),
    ("0.0.0.0", False), ("::", False), ("192.168.0.2", False), ("office.home", False),  # noqa: S104 - a row
])  # fmt: skip
def test_who_can_reach_it(host: str, alone: bool) -> None:  # noqa: FBT001 - a column of the table
    assert is_loopback(host) is alone


def test_places_and_limits_that_can_be_meant() -> None:
    check_place("127.0.0.1", 0)
    check_place("office.home", 65_535)
    check_limit("--max-sessions", 1)
    check_limit("--session-limit", 0.5)
    check_limit("--max-model-len", 40, least=40)


def test_a_socket_that_cannot_listen_is_not_left_behind() -> None:
    async def main() -> None:
        first = await listen("127.0.0.1", 0)
        with first, pytest.raises(OSError, match="in use"):
            await listen("127.0.0.1", first.getsockname()[1])

    asyncio.run(main())  # a socket left behind would be a warning
