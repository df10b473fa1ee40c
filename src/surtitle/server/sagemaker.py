"""`surtitle serve sagemaker`: the local stand-in of the SageMaker runtime."""

import asyncio
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from surtitle.core.errors import UsageError
from surtitle.server.certificates import write_private
from surtitle.server.faults import Cut
from surtitle.server.records import SessionRecord
from surtitle.server.sigv4 import STANDIN_CREDENTIALS, Credentials
from surtitle.server.standin import Standin

__all__ = [
    "SECRET_VARIABLE",
    "STANDIN_CREDENTIALS",
    "Credentials",
    "Cut",
    "SessionRecord",
    "Standin",
    "StandinOptions",
    "serve",
]

SECRET_VARIABLE = "SURTITLE_STANDIN_SECRET"  # noqa: S105 - the name of a variable
"""The environment variable with the secret, where no other is named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StandinOptions:
    """What `surtitle serve sagemaker` was asked for; the names are those of the options."""

    container: str = "ws://127.0.0.1:8080/invocations-bidirectional-stream"
    host: str = "127.0.0.1"
    port: int = 8443
    ca_out: Path = Path("surtitle-standin-ca.pem")
    endpoint: str | None = None
    access_key: str = STANDIN_CREDENTIALS.access_key
    secret_env: str | None = None
    """The environment variable with the secret."""
    session_limit: float = 1800.0
    """Seconds."""
    cut: Cut = Cut.END
    max_sessions: int | None = None
    fault: Sequence[str] = ()


def serve(
    options: StandinOptions,
    environment: Mapping[str, str],
    *,
    say: Callable[[str], None] | None = None,
    log: Callable[[str], None] | None = None,
) -> int:
    """Run the stand-in until it is told to end. Returns the exit code.

    Args:
        options: How.
        environment: Where the secret may be.
        say: Is told in one line when clients may come; if None, it is printed.
        log: Is told a line about every session that is over.

    Raises:
        UsageError: An option cannot be meant.
        SurtitleError: It cannot listen there.
        OutputError: The CA's certificate cannot be written.
    """
    tell = say or partial(print, flush=True)  # also where it goes into a pipe
    with suppress(KeyboardInterrupt):  # where the loop knows no signals
        asyncio.run(_run(options, _credentials(options, environment), tell, log))
    return 0


async def _run(
    options: StandinOptions,
    credentials: Credentials,
    say: Callable[[str], None],
    log: Callable[[str], None] | None,
) -> None:
    over = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        with suppress(NotImplementedError):  # Windows
            loop.add_signal_handler(number, over.set)
    async with Standin(
        options.container,
        host=options.host,
        port=options.port,
        faults=options.fault,
        credentials=credentials,
        endpoint=options.endpoint,
        session_limit=options.session_limit,
        cut=options.cut,
        max_sessions=options.max_sessions,
        log=log,
    ) as standin:
        write_private(options.ca_out, standin.ca_pem)
        say(f"Listening on {standin.url}, CA written to {options.ca_out}")
        await over.wait()


def _credentials(options: StandinOptions, environment: Mapping[str, str]) -> Credentials:
    name = options.secret_env or SECRET_VARIABLE
    secret = environment.get(name, "")
    if options.secret_env and not secret:
        raise UsageError(
            f"The environment variable {name} is not set.",
            remedy="Put the secret access key into it, or leave out --secret-env.",
            field="--secret-env",
        )
    return Credentials(access_key=options.access_key, secret=secret or STANDIN_CREDENTIALS.secret)
