"""The real client of the SDK against the stand-in, and the stand-in as a program."""

import asyncio
import gc
import os
import signal
import stat
import subprocess
import sys
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from aws_sdk_sagemaker_runtime_http2.client import AsyncSageMakerRuntimeHTTP2Client
from aws_sdk_sagemaker_runtime_http2.config import AsyncSageMakerRuntimeHTTP2Config
from aws_sdk_sagemaker_runtime_http2.models import (
    InvokeEndpointWithBidirectionalStreamInput,
    ModelError,
    ModelStreamError,
    RequestPayloadPart,
    RequestStreamEventPayloadPart,
)
from awscrt.io import ClientTlsContext, TlsContextOptions
from smithy_core.exceptions import CallError
from smithy_http.aio.crt import AWSCRTHTTPClient, AWSCRTHTTPClientConfig
from websockets.asyncio.server import ServerConnection

from fakes.container import ContainerServer, counting
from fakes.standing_in import ended, standin
from surtitle.core.errors import OutputError, SurtitleError, UsageError
from surtitle.server.sagemaker import (
    STANDIN_CREDENTIALS,
    Credentials,
    Cut,
    Standin,
    StandinOptions,
    serve,
)


@asynccontextmanager
async def opened(
    server: Standin, credentials: Credentials = STANDIN_CREDENTIALS, **more: str
) -> AsyncIterator[Any]:
    """A stream of the SDK's client, which has no types."""
    transport = AWSCRTHTTPClient(client_config=AWSCRTHTTPClientConfig(force_http_2=True))
    options = TlsContextOptions()
    options.override_default_trust_store(server.ca_path.read_bytes())
    transport._tls_ctx = ClientTlsContext(options)  # there is no public way
    config = await AsyncSageMakerRuntimeHTTP2Config.resolve(
        endpoint_uri=server.url,
        region="eu-west-1",
        transport=transport,
        aws_access_key_id=credentials.access_key,
        aws_secret_access_key=credentials.secret,
        aws_session_token=credentials.session_token,
    )
    service = AsyncSageMakerRuntimeHTTP2Client(config)
    stream = await service.invoke_endpoint_with_bidirectional_stream(
        InvokeEndpointWithBidirectionalStreamInput(endpoint_name="my-endpoint", **more)
    )
    try:
        yield stream
    finally:
        with suppress(TimeoutError):  # it may wait for ever
            async with asyncio.timeout(0.5):
                await stream.input_stream.close()
        await service.close()


async def send(stream: Any, data: bytes, **more: str) -> None:  # noqa: ANN401 - it has no types
    await stream.input_stream.send(
        RequestStreamEventPayloadPart(value=RequestPayloadPart(bytes_=data, **more))
    )


def run(work: Coroutine[object, object, None]) -> None:
    """Run it, without the one complaint that the SDK's library has whenever a server ends first."""

    async def main() -> None:
        loop = asyncio.get_running_loop()

        def note(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
            if "AWS_ERROR_HTTP_STREAM_HAS_COMPLETED" not in str(context.get("exception")):
                loop.default_exception_handler(context)

        loop.set_exception_handler(note)
        await work
        for _ in range(3):  # its tasks complain when they go, its generators end in new tasks
            gc.collect()
            await asyncio.sleep(0)
            if left := asyncio.all_tasks() - {asyncio.current_task()}:
                await asyncio.wait(left, timeout=1)

    asyncio.run(main())


def test_the_sdk_talks_through_it_to_a_container() -> None:
    async def main() -> None:
        texts = [b"hello", b"", "zwölf 👍 字".encode(), b"x" * 100_000]
        async with standin() as (server, container):
            async with opened(server, model_query_string="a=b") as stream:
                for text in texts:
                    await send(stream, text, data_type="UTF8")
                await send(stream, b"\x00\xff", data_type="BINARY")
                output, events = await stream.await_output()
                assert output.invoked_production_variant == "AllTraffic"
                got = [(await events.receive()).value for _ in range(5)]
                assert [value.bytes_ or b"" for value in got] == [*texts, b"\x00\xff"]
                assert [value.data_type for value in got] == [*["UTF8"] * 4, "BINARY"]
                assert {value.completion_state for value in got} == {"COMPLETE"}
                await stream.input_stream.close()
                assert await events.receive() is None
            await container.ended.wait()
            assert container.closed == [1000]
            assert container.targets == ["/invocations-bidirectional-stream?a=b"]
            assert ended(server) == ["client"]

    run(main())


def test_parts_of_the_sdk_are_frames_of_one_message() -> None:
    async def main() -> None:
        async with standin() as (server, _), opened(server) as stream:
            whole = "äöü".encode()
            await send(stream, whole[:3], data_type="UTF8", completion_state="PARTIAL")
            await send(stream, whole[3:], data_type="UTF8", completion_state="COMPLETE")
            _, events = await stream.await_output()
            value = (await events.receive()).value
            assert (value.bytes_, value.completion_state) == (whole, "COMPLETE")
            await stream.input_stream.close()
            assert await events.receive() is None

    run(main())


def test_five_hundred_parts_stay_in_order() -> None:
    async def main() -> None:
        async with standin() as (server, _), opened(server) as stream:

            async def feed() -> None:
                for number in range(500):
                    await send(stream, f"{number}: {'ä' * 2000}".encode(), data_type="UTF8")

            feeder = asyncio.create_task(feed())
            _, events = await stream.await_output()
            for number in range(500):
                assert (await events.receive()).value.bytes_.startswith(f"{number}: ".encode())
            await feeder
            await stream.input_stream.close()
            assert await events.receive() is None
            assert server.sessions[0].events_in == server.sessions[0].events_out == 500

    run(main())


@pytest.mark.parametrize(
    ("credentials", "error"),
    [
        (Credentials(access_key="AKIDLOCALSTANDIN", secret="no"), "InvalidSignatureException"),  # noqa: S106 - a test's
        (Credentials(access_key="AKIDOTHER", secret="no"), "UnrecognizedClientException"),  # noqa: S106 - a test's
    ],
)
def test_the_sdk_with_a_wrong_secret_is_refused(credentials: Credentials, error: str) -> None:
    async def main() -> None:
        async with standin() as (server, container), opened(server, credentials) as stream:
            with pytest.raises(CallError, match="403"):
                await stream.await_output()
            assert ended(server) == [f"refused {error}"]
            assert not container.targets

    run(main())


def test_the_sdk_with_a_session_token() -> None:
    async def main() -> None:
        credentials = Credentials(access_key="AKID", secret="s", session_token="t")  # noqa: S106 - a test's
        async with (
            standin(credentials=credentials) as (server, _),
            opened(server, credentials) as stream,
        ):
            await send(stream, b"hi", data_type="UTF8")
            _, events = await stream.await_output()
            assert (await events.receive()).value.bytes_ == b"hi"
            await stream.input_stream.close()
            assert await events.receive() is None

    run(main())


def test_a_cut_session_is_an_end_or_an_error() -> None:
    async def main() -> None:
        for cut in (Cut.END, Cut.ERROR, Cut.RST, Cut.GOAWAY):
            async with standin(counting, session_limit=0.2, cut=cut) as (server, _):
                async with opened(server) as stream:
                    _, events = await stream.await_output()
                    for _ in range(5):
                        assert await events.receive() is not None
                    if cut is Cut.ERROR:
                        with pytest.raises(ModelStreamError) as caught:
                            await events.receive()
                        assert caught.value.error_code == "ModelInvocationTimeExceeded"
                    else:
                        assert await events.receive() is None
                assert ended(server) == ["limit"]

    run(main())


def test_a_container_that_closes_or_refuses_is_the_sdks_error() -> None:
    async def closing(connection: ServerConnection) -> None:
        await connection.close(1011, "out of memory")

    async def main() -> None:
        async with standin(closing) as (server, _), opened(server) as stream:
            _, events = await stream.await_output()
            with pytest.raises(ModelStreamError, match="out of memory") as caught:
                await events.receive()
            assert caught.value.error_code == "1011"
        async with ContainerServer() as container:
            url = container.url
        async with Standin(url) as server, opened(server) as stream:
            with pytest.raises(ModelError) as refused:
                await stream.await_output()
            assert refused.value.original_message == "The container cannot be reached."

    run(main())


PROGRAM = """
import os, sys
from pathlib import Path
from surtitle.server.sagemaker import StandinOptions, serve
sys.exit(serve(StandinOptions(port=0, ca_out=Path(sys.argv[1])), os.environ))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_program_says_when_it_is_ready_and_ends_when_told(
    number: signal.Signals, tmp_path: Path
) -> None:
    file = tmp_path / "ca.pem"
    with subprocess.Popen(
        [sys.executable, "-W", "error", "-c", PROGRAM, str(file)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("Listening on https://localhost:")
        assert line.endswith(f", CA written to {file}\n")
        assert file.read_bytes().startswith(b"-----BEGIN CERTIFICATE-----")
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        process.send_signal(number)
        assert process.communicate(timeout=10) == ("", "")
    assert process.returncode == 0


@pytest.mark.parametrize(
    ("options", "field"),
    [
        (StandinOptions(container="http://127.0.0.1:8080/x"), "--container"),
        (StandinOptions(container="nonsense"), "--container"),
        (StandinOptions(port=99_999), "--port"),
        (StandinOptions(host="nowhere.invalid"), "--host"),
        (StandinOptions(secret_env="NOT_SET"), "--secret-env"),  # noqa: S106 - a name
        (StandinOptions(fault=["nothing"]), "--fault"),
        (StandinOptions(session_limit=0), "--session-limit"),
        (StandinOptions(max_sessions=0), "--max-sessions"),
    ],
)
def test_an_option_that_cannot_be_meant_is_named(
    options: StandinOptions, field: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError) as caught:
        # If it were meant, this would be another error: nothing runs by accident.
        serve(replace(options, ca_out=tmp_path / "missing" / "ca.pem"), {})
    assert caught.value.field == field
    assert caught.value.remedy


def test_a_port_that_is_taken_is_a_sentence() -> None:
    async def main() -> None:
        async with standin() as (server, _):
            with pytest.raises(SurtitleError, match=f"Port {server.port} .* taken") as caught:
                async with Standin("ws://127.0.0.1:1/x", port=server.port):
                    pass
            assert (caught.value.field, caught.value.exit_code) == ("--port", 1)

    asyncio.run(main())


def test_a_certificate_that_cannot_be_written_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="cannot be written"):
        serve(StandinOptions(port=0, ca_out=tmp_path / "missing" / "ca.pem"), os.environ)


def test_it_is_for_this_computer_unless_told_otherwise() -> None:
    assert StandinOptions().host == "127.0.0.1"

    async def main() -> None:
        async with standin(host="::1") as (server, _):
            reader, writer = await asyncio.open_connection("::1", server.port)
            writer.close()
            assert await reader.read() == b""
            folder = server.ca_path.parent
        assert not folder.exists()

    asyncio.run(main())
