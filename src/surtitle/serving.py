"""The local servers: built from what the command line asked for, and run until they are ended."""

import asyncio
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from surtitle.core.errors import Decision, EngineError, OutputError

__all__ = ["serve_realtime", "serve_sagemaker"]


def serve_realtime(
    *,
    host: str,
    port: int,
    model: str,
    max_sessions: int,
    max_model_len: int,
    api_key_env: str | None,
) -> int:
    """Serve the Realtime API over the on-device engine until told to end. Returns the exit code.

    Args:
        host: Where to listen; it is warned if others can reach it.
        port: The same; 0 takes any that is free.
        model: The name that clients ask for.
        max_sessions: How many are heard at once.
        max_model_len: Tokens of a session.
        api_key_env: The environment variable with the key that clients must bring.

    Raises:
        UsageError: An option cannot be meant.
        EngineError: There is no on-device engine on this computer.
        SurtitleError: It cannot listen there.
        OutputError: Nobody can be told that it is ready.
    """
    # Here, and not above: whoever wants one server need not have what the other one needs.
    from surtitle.engines.models import PACKAGED, locate  # noqa: PLC0415
    from surtitle.engines.on_device import OnDeviceEngine  # noqa: PLC0415
    from surtitle.server.options import is_loopback  # noqa: PLC0415
    from surtitle.server.realtime import (  # noqa: PLC0415
        RealtimeServer,
        key_from_environment,
        run,
    )

    server = RealtimeServer(
        OnDeviceEngine,
        host=host,
        port=port,
        model=model,
        max_sessions=max_sessions,
        max_model_len=max_model_len,
        api_key=None if api_key_env is None else key_from_environment(api_key_env),
        log=_log,
    )
    locate(PACKAGED)  # or each client would be told that its session failed
    if not is_loopback(host):
        who = "whoever has the key" if api_key_env else "everybody, for it wants no key"
        _warn(
            f"Others in the network can reach this server at {host}: it lets in {who}. "
            "Nothing on the way is encrypted."
        )
    asyncio.run(run(server, say=_say))
    return 0


def serve_sagemaker(
    *,
    container: str,
    host: str,
    port: int,
    ca_out: Path,
    endpoint: str | None,
    session_limit: float,
    cut: str,
    max_sessions: int | None,
    faults: Sequence[str],
) -> int:
    """Stand in for the SageMaker runtime until told to end. Returns the exit code.

    Args:
        container: The WebSocket address of the container.
        host: Where to listen; it is warned if others can reach it.
        port: The same; 0 takes any that is free.
        ca_out: Where the certificate of its authority is written.
        endpoint: The only endpoint there is; any if None.
        session_limit: Seconds after which a session is cut.
        cut: How.
        max_sessions: How many at a time; any if None.
        faults: What goes wrong, one item for each attempt to come.

    Raises:
        UsageError: An option cannot be meant.
        EngineError: A library is missing.
        SurtitleError: It cannot listen there.
        OutputError: The certificate cannot be written, or nobody can be told that it is ready.
    """
    from surtitle.server.options import is_loopback  # noqa: PLC0415 - as above

    try:
        from surtitle.server.sagemaker import (  # noqa: PLC0415 - an extra
            Cut,
            StandinOptions,
            serve,
        )
    except ImportError as error:
        raise EngineError(
            f"A library of the stand-in is not installed ({error.name}).",
            remedy="Run: pip install 'surtitle[serve]'",
            decision=Decision.RECONFIGURE,
        ) from error
    options = StandinOptions(
        container=container,
        host=host,
        port=port,
        ca_out=ca_out,
        endpoint=endpoint,
        session_limit=session_limit,
        cut=Cut(cut),
        max_sessions=max_sessions,
        fault=faults,
    )
    if not is_loopback(host):
        _warn(
            f"Others in the network can reach this stand-in at {host}: whoever knows its "
            "access key can use the container behind it."
        )
    return serve(options, os.environ, say=_say, log=_log)


def _say(line: str) -> None:
    """Tell whoever has started it that clients may come. Raises OutputError."""
    try:
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError(f"The output cannot be written: {error.strerror}.") from error


def _warn(sentence: str) -> None:
    _log(f"surtitle: {sentence}")


def _log(line: str) -> None:
    """Write a line for whoever watches; if nobody can, the server goes on."""
    with suppress(OSError, ValueError):
        sys.stderr.write(f"{line}\n")
        sys.stderr.flush()
