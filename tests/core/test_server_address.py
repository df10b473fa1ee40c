"""Addresses and keys of speech servers: every one is understood or refused with a sentence."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surtitle.core.errors import Decision, UsageError
from surtitle.core.server_address import (
    ServerAddress,
    parse_server_address,
    parse_server_key,
)


@pytest.mark.parametrize(
    ("text", "url", "server", "name", "place"),
    [
        (
            *("wss://gpu.home/v1/realtime", "wss://gpu.home/v1/realtime"),
            *("gpu.home", "gpu.home:443", "to gpu.home"),
        ),
        (
            *(" WSS://GPU.Home:8000 ", "wss://gpu.home:8000/v1/realtime"),
            *("gpu.home:8000", "gpu.home:8000", "to gpu.home"),
        ),
        (
            *("wss://gpu.home:/", "wss://gpu.home/v1/realtime"),
            *("gpu.home", "gpu.home:443", "to gpu.home"),
        ),
        (
            *("wss://gpu.home?model=a&b=%20", "wss://gpu.home/v1/realtime?model=a&b=%20"),
            *("gpu.home", "gpu.home:443", "to gpu.home"),
        ),
        (
            *("wss://gpu.home/Speech/", "wss://gpu.home/Speech/"),
            *("gpu.home", "gpu.home:443", "to gpu.home"),
        ),
        (
            *("ws://localhost:8000", "ws://localhost:8000/v1/realtime"),
            *("localhost:8000", "localhost:8000", "to localhost"),
        ),
        (
            *("ws://127.9.9.9:80/a", "ws://127.9.9.9/a"),
            *("127.9.9.9", "127.9.9.9:80", "to 127.9.9.9"),
        ),
        (
            *("ws://[0:0::1]:8000", "ws://[::1]:8000/v1/realtime"),
            *("[::1]:8000", "[::1]:8000", "to ::1"),
        ),
        (
            *("wss://[2001:DB8::1]", "wss://[2001:db8::1]/v1/realtime"),
            *("[2001:db8::1]", "[2001:db8::1]:443", "to 2001:db8::1"),
        ),
        (
            *("wss://münchen.example", "wss://xn--mnchen-3ya.example/v1/realtime"),
            *("xn--mnchen-3ya.example", "xn--mnchen-3ya.example:443"),
            "to xn--mnchen-3ya.example",
        ),
    ],
)
def test_what_an_address_means(text: str, url: str, server: str, name: str, place: str) -> None:
    address = parse_server_address(text)
    assert (address.url, address.server, address.name, address.place) == (url, server, name, place)


@pytest.mark.parametrize(
    ("text", "message", "remedy"),
    [
        ("", "no address", "wss://gpu.home/v1/realtime"),
        ("  ", "no address", "wss://gpu.home/v1/realtime"),
        ("http://gpu.home:8000/v1", "starts with http://", "wss://gpu.home:8000/v1/realtime"),
        ("https://gpu.home/speech", "starts with https://", "wss://gpu.home/speech"),
        ("http://127.0.0.1:8000", "starts with http://", "ws://127.0.0.1:8000/v1/realtime"),
        ("https://localhost", "starts with https://", "wss://localhost/v1/realtime"),
        ("gpu.home:8000", "does not start with", "wss://gpu.home:8000/v1/realtime"),
        ("localhost:8000/x", "does not start with", "ws://localhost:8000/x"),
        ("ftp://gpu.home", "does not start with", "wss://gpu.home/v1/realtime"),
        ("wss://", "no host", "wss://gpu.home"),
        ("wss:///v1/realtime", "no host", "wss://gpu.home"),
        ("wss://:8000", "no host", "wss://gpu.home"),
        ("wss://a..b", "no host", "wss://gpu.home"),
        ("wss://-a.b", "no host", "wss://gpu.home"),
        ("wss://1.2.3", "no host", "wss://gpu.home"),
        ("wss://256.1.1.1", "no host", "wss://gpu.home"),
        (f"wss://{'a' * 64}.b", "no host", "wss://gpu.home"),
        (f"wss://{'é' * 64}.b", "no host", "wss://gpu.home"),
        (f"wss://{'abc.' * 64}b", "no host", "wss://gpu.home"),
        ("wss://[::1", "no host", "wss://gpu.home"),
        ("wss://[1.2.3.4]", "no host", "wss://gpu.home"),
        ("wss://[::1]8000", "no host", "wss://gpu.home"),
        ("wss://2001:db8::1", "more than one colon", "in brackets"),
        ("wss://gpu.home:0", "from 1 to 65535", "after the host"),
        ("wss://gpu.home:65536", "from 1 to 65535", "after the host"),
        ("wss://gpu.home:http", "from 1 to 65535", "after the host"),
        ("wss://gpu.home:٣", "from 1 to 65535", "after the host"),
        ("ws://0.0.0.0:8000", "where a server listens", "127.0.0.1"),
        ("ws://[::]:8000", "where a server listens", "127.0.0.1"),
        ("wss://gpu.home/a b", "a space", "wss://gpu.home"),
        ("wss://gpu.home/a\nb", "a space", "wss://gpu.home"),
        ("wss:\\\\gpu.home", "a space", "wss://gpu.home"),
        ("wss://gpu.home/é", "letters", "percent-encoded"),
        ("wss://gpu.home/?é", "letters", "percent-encoded"),
        ("wss://gpu.home/#top", "after #", "Leave that part out"),
        ("wss://me:hunter2@gpu.home", "user name or a password", "--api-key-env"),
        ("https://hunter2@gpu.home", "user name or a password", "--api-key-env"),
        ("ws://gpu.home:8000", "without encryption", "--allow-plaintext"),
        ("ws://localhost.example", "without encryption", "--allow-plaintext"),
        ("ws://128.0.0.1", "without encryption", "--allow-plaintext"),
    ],
)
def test_what_cannot_be_meant(text: str, message: str, remedy: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_server_address(text)
    error = caught.value
    assert message in error.message
    assert remedy in error.remedy
    assert (error.field, error.decision) == ("--url", Decision.RECONFIGURE)


def test_plaintext_leads_away_only_if_the_user_insists_and_is_told_of() -> None:
    address = parse_server_address("ws://gpu.home", allow_plaintext=True)
    assert address.place == "to gpu.home, not encrypted"
    assert not address.loopback


@pytest.mark.parametrize(
    "host", ["localhost", "localhost.", "127.0.0.1", "::1", "::ffff:127.0.0.1"]
)
def test_this_computer(host: str) -> None:
    shown = f"[{host}]" if ":" in host else host
    assert parse_server_address(f"ws://{shown}").loopback


SECRET = "hunter2-SECRET"  # noqa: S105 - of nothing


@pytest.mark.parametrize(
    "text",
    [
        f"{scheme}{user}gpu.home{port}/v1{query}"
        for scheme in ("wss://", "ws://", "https://", "", "x://")
        for user in ("", f"me:{SECRET}@")
        for port in ("", ":99999")
        for query in (f"?token={SECRET}", f"#{SECRET}", f"? {SECRET}")
    ],
)
def test_what_may_be_secret_is_not_repeated(text: str) -> None:
    try:
        shown = repr(parse_server_address(text))
    except UsageError as error:
        shown = f"{error}{error!r}{error.__cause__}"
    assert SECRET not in shown


@given(
    st.one_of(
        st.text(max_size=40),
        st.from_regex(r"(wss?://)?[a-zA-Z0-9.:\[\]@%-]{0,12}(:[0-9]{0,6})?(/[!-~]{0,9})?"),
    )
)
def test_anything_is_understood_or_refused(text: str) -> None:
    refused = None
    try:
        address = parse_server_address(text, allow_plaintext=True)
    except UsageError as error:
        refused = error
    if refused is None:
        assert parse_server_address(address.url, allow_plaintext=True) == address
        assert address.url.isascii()
    else:
        assert refused.message.endswith(".")
        assert refused.remedy


@given(
    secure=st.booleans(),
    host=st.sampled_from(["gpu.home", "localhost", "10.0.0.7", "2001:db8::1", "a_b"]),
    port=st.integers(1, 65535),
    path=st.from_regex(r"/[a-zA-Z0-9/._~%-]{1,20}", fullmatch=True),
    query=st.from_regex(r"[a-z=&%0-9]{0,9}", fullmatch=True),
)
def test_an_address_is_what_its_url_means(
    *, secure: bool, host: str, port: int, path: str, query: str
) -> None:
    address = ServerAddress(secure=secure, host=host, port=port, path=path, query=query)
    assert parse_server_address(address.url, allow_plaintext=True) == address


def test_a_key_as_it_was_copied() -> None:
    assert parse_server_key(" sk-1/2+3=\n") == "sk-1/2+3="


@pytest.mark.parametrize("text", ["", " \n", "sk 1", "sk-\r\nX: y", "clé-SECRET", "\0"])
def test_what_is_no_key(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_server_key(text)
    assert caught.value.field == "--api-key-env"
    assert not text.strip() or text not in str(caught.value)
