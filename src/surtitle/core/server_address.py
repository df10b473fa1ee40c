"""How to reach a speech server: the address and the key that a user gives for it."""

import ipaddress
import re
from dataclasses import dataclass, field

from surtitle.core.errors import Decision, UsageError

__all__ = ["DEFAULT_PATH", "ServerAddress", "parse_server_address", "parse_server_key"]

DEFAULT_PATH = "/v1/realtime"
"""Where vLLM and those like it take captions."""

_FIELD = "--url"
_EXAMPLE = f"wss://gpu.home{DEFAULT_PATH}"
_SCHEMES = {"ws": False, "wss": True, "http": False, "https": True}
_LABEL = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)")
_KEY = re.compile(r"[!-~]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerAddress:
    """A place that speaks the Realtime protocol over a WebSocket."""

    secure: bool
    """Whether what is sent is encrypted."""
    host: str
    """Name or IP address, in lower case; an international name in its ASCII form."""
    port: int
    path: str
    query: str = field(default="", repr=False)
    """May hold a secret: part of `url`, of nothing that is shown."""

    @property
    def url(self) -> str:
        """All of it, for who connects; not to be shown, since the query may be secret."""
        query = f"?{self.query}" if self.query else ""
        return f"{self._scheme}://{self.server}{self.path}{query}"

    @property
    def server(self) -> str:
        """Host and, unless it is the usual one, port: such as `gpu.home:8000`."""
        usual = 443 if self.secure else 80
        return self._bracketed if self.port == usual else self.name

    @property
    def name(self) -> str:
        """Host and port, always both: what a key is kept under."""
        return f"{self._bracketed}:{self.port}"

    @property
    def loopback(self) -> bool:
        """Whether it is this computer by name or address: nothing leaves it unencrypted."""
        return _is_loopback(self.host)

    @property
    def place(self) -> str:
        """Where the sound goes, for the status line."""
        exposed = not self.secure and not self.loopback
        return f"to {self.host}, not encrypted" if exposed else f"to {self.host}"

    @property
    def _scheme(self) -> str:
        return "wss" if self.secure else "ws"

    @property
    def _bracketed(self) -> str:
        return f"[{self.host}]" if ":" in self.host else self.host


def parse_server_address(text: str, *, allow_plaintext: bool = False) -> ServerAddress:
    """Understand an address such as `wss://gpu.home:8000/v1/realtime`.

    Args:
        text: What the user wrote; without a path it is `DEFAULT_PATH`.
        allow_plaintext: Whether `ws://` may lead away from this computer.

    Raises:
        UsageError: It cannot be meant. Nothing of it that may be secret is repeated.
    """
    text = text.strip()
    if not text:
        raise _wrong("There is no address of a speech server.", f"Give one such as {_EXAMPLE}.")
    if not text.isprintable() or set(text) & set(' \\"<>^`{|}'):
        raise _wrong(
            "The address of the speech server has a space or another character that none has.",
            f"Give one such as {_EXAMPLE}.",
        )
    scheme, separator, rest = text.partition("://")
    if not separator:
        scheme, rest = "", text
    scheme = scheme.lower()
    rest, mark, _ = rest.partition("#")
    rest, _, query = rest.partition("?")
    authority, slash, path = rest.partition("/")
    if "@" in authority:
        raise _wrong(
            "The address of the speech server holds a user name or a password.",
            "Leave it out; name the variable that holds the key with --api-key-env.",
        )
    host, port = _host_and_port(authority)
    secure = _SCHEMES.get(scheme, True)
    meant = ServerAddress(
        secure=secure,
        host=host,
        port=port or (443 if secure else 80),
        path=slash + path if path else DEFAULT_PATH,
        query=query,
    )
    if scheme not in ("ws", "wss"):
        raise _wrong(
            f"The address of the speech server starts with {scheme}://, not wss:// or ws://."
            if scheme in _SCHEMES
            else "The address of the speech server does not start with wss:// or ws://.",
            f"Write: {_suggestion(meant, port, secure=scheme == 'https')}",
        )
    if mark:
        raise _wrong(
            "The address of the speech server has a part after #, which no server gets to see.",
            "Leave that part out.",
        )
    if not (meant.path + query).isascii():
        raise _wrong(
            "The path of the speech server's address has letters that an address cannot have.",
            "Write them percent-encoded, such as %C3%A9.",
        )
    if not secure and not meant.loopback and not allow_plaintext:
        raise _wrong(
            f"ws:// would send all you hear to {meant.host} without encryption.",
            "Use wss://, or add --allow-plaintext if you trust every network in between.",
        )
    return meant


def parse_server_key(text: str) -> str:
    """Understand a key as it can be sent: no white space around it, none in it.

    Raises:
        UsageError: It is none. Nothing of it is repeated.
    """
    key = text.strip()
    if not _KEY.fullmatch(key):
        raise UsageError(
            "The key of the speech server is empty."
            if not key
            else "The key of the speech server has a space or another character that none has.",
            remedy="Copy the key again, all of it and nothing else.",
            decision=Decision.RECONFIGURE,
            field="--api-key-env",
        )
    return key


def _host_and_port(authority: str) -> tuple[str, int | None]:
    """Understand `name:port`, `1.2.3.4`, `[::1]:port`."""
    if authority.startswith("["):
        host, bracket, port = authority[1:].partition("]")
        if not bracket or (port and not port.startswith(":")):
            raise _wrong_host()
        port = port.removeprefix(":")
        try:
            host = str(ipaddress.IPv6Address(host))
        except ValueError as error:
            raise _wrong_host() from error
    else:
        if authority.count(":") > 1:
            raise _wrong(
                "The address of the speech server has more than one colon in its host.",
                "Put an IPv6 address in brackets, such as wss://[2001:db8::1]:8000.",
            )
        host, _, port = authority.partition(":")
        host = _host_name(host)
    if host in ("0.0.0.0", "::"):  # noqa: S104 - refused here
        raise _wrong(
            f"{host} is where a server listens, not where it can be reached.",
            "For a server on this computer write 127.0.0.1, else the other computer's name.",
        )
    if not port:
        return host, None
    if not re.fullmatch(r"[0-9]{1,5}", port) or not 0 < int(port) < 2**16:
        raise _wrong(
            "The port in the address of the speech server is no number from 1 to 65535.",
            "Write it after the host, such as wss://gpu.home:8000.",
        )
    return host, int(port)


def _host_name(host: str) -> str:
    """Check a name or an IPv4 address, and put it into lower case and ASCII."""
    try:
        name = host.lower().encode("idna" if not host.isascii() else "ascii").decode()
    except UnicodeError as error:
        raise _wrong_host() from error
    labels = name.removesuffix(".").split(".")
    if len(name) > 253 or not all(map(_LABEL.fullmatch, labels)):  # noqa: PLR2004 - the longest name DNS knows
        raise _wrong_host()
    if labels[-1].isdecimal():
        try:
            return str(ipaddress.IPv4Address(name))
        except ValueError as error:
            raise _wrong_host() from error
    return name


def _is_loopback(host: str) -> bool:
    if host.removesuffix(".") == "localhost":
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (mapped or address).is_loopback


def _suggestion(meant: ServerAddress, port: int | None, *, secure: bool) -> str:
    """What somebody meant who wrote `https://gpu.home/v1` or `gpu.home`."""
    scheme = "wss" if secure or not meant.loopback else "ws"
    where = meant.name if port else meant.name.rpartition(":")[0]
    path = DEFAULT_PATH if meant.path.rstrip("/") == "/v1" else meant.path
    return f"{scheme}://{where}{path}"


def _wrong_host() -> UsageError:
    return _wrong(
        "The address of the speech server names no host that can exist.",
        f"Give one such as {_EXAMPLE}.",
    )


def _wrong(message: str, remedy: str) -> UsageError:
    return UsageError(message, remedy=remedy, decision=Decision.RECONFIGURE, field=_FIELD)
