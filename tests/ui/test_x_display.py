import socket
from collections.abc import Iterator

import pytest

from surtitle.ui.x_display import answers


@pytest.fixture
def display() -> Iterator[str]:
    """A display number that somebody listens on."""
    number = 4711
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
        server.bind(f"\0/tmp/.X11-unix/X{number}")
        server.listen()
        yield f":{number}"


def test_a_server_that_listens_answers(display: str) -> None:
    assert answers(display)
    assert answers(f"{display}.0")
    assert answers(f"unix{display}")


@pytest.mark.parametrize("name", [":4712", ":4712.1", "localhost:4712"])
def test_where_nobody_listens_nobody_answers(name: str) -> None:
    assert not answers(name)


def test_what_is_no_display_is_left_to_qt() -> None:
    assert answers("/private/tmp/com.apple.launchd/org.xquartz:0x")
