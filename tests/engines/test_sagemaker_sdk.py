"""AWS's real SDK through the transport, against the stand-in of the service, on loopback."""

import asyncio
import gc
import logging
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from awscrt.aio.http import AIOHttpClientStreamUnified
from smithy_http.aio.crt import AWSCRTHTTPClient

from fakes.container import ContainerServer, echo
from surtitle.core.errors import Decision, EngineError
from surtitle.core.sagemaker_target import SageMakerTarget
from surtitle.engines import sagemaker_sdk
from surtitle.engines.aws_credentials import Credentials
from surtitle.engines.sagemaker import Limits, SageMakerTransport
from surtitle.server.sagemaker import Standin
from surtitle.server.sigv4 import STANDIN_CREDENTIALS

RETRY, RECONFIGURE, FATAL = Decision.RETRY, Decision.RECONFIGURE, Decision.FATAL
LIMIT = 20.0
"""Seconds after which a test that waits has failed."""
SHORT = Limits(total=4.0, connect=0.6, certificate=0.5, answer=0.6, send=0.5)
TEXTS = ["hello", "", "Grüße, \N{SNOWMAN}\N{GRINNING FACE}", '{"type":"x"}']


class Provider:
    """The one pair of keys that the stand-in knows, unless told otherwise."""

    def __init__(self, **other: str) -> None:
        keys = {
            "access_key": STANDIN_CREDENTIALS.access_key,
            "secret_key": STANDIN_CREDENTIALS.secret,
        }
        keys |= other
        self._credentials = Credentials(**keys, renewal="Run: aws sso login")  # type: ignore[arg-type] # only texts are given

    async def resolve(self) -> Credentials:
        return self._credentials


def transport(
    server: Standin, *, limits: Limits | None = None, keys: Provider | None = None, **more: str
) -> SageMakerTransport:
    values = {
        "endpoint": "voxtral",
        "region": "eu-west-1",
        "endpoint_url": server.url,
        "ca_bundle": str(server.ca_path),
    }
    return SageMakerTransport(
        SageMakerTarget(**(values | more)), credentials=keys or Provider(), limits=limits
    )


def on_loopback(use: Callable[[], Awaitable[None]]) -> None:
    """Run; see that neither asyncio nor a C thread complains, then or when it is collected."""
    complaints: list[str] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: complaints.append(str(context)))
        async with asyncio.timeout(LIMIT):
            await use()

    asyncio.run(main())
    gc.collect()
    assert not complaints


def ours() -> list[str]:
    """Tasks of the transport and of the SDK that still run."""
    return [
        repr(task)
        for task in asyncio.all_tasks()
        if task.get_name().startswith("sagemaker-")
        or any(name in repr(task) for name in ("awscrt", "smithy", "RequestPipeline", "Duplex"))
    ]


async def closed(under_test: SageMakerTransport) -> None:
    begun = time.monotonic()
    await under_test.close()
    assert time.monotonic() - begun < 2.5
    assert ours() == []


async def spoken(under_test: SageMakerTransport, texts: list[str]) -> None:
    for text in texts:
        await under_test.send(text)
    assert [await under_test.receive() for _ in texts] == texts


async def talking(under_test: SageMakerTransport) -> None:
    while True:  # the limit of the test ends it
        await spoken(under_test, TEXTS)
        await asyncio.sleep(0.01)


async def pouring(under_test: SageMakerTransport) -> None:
    while True:  # the limit of the test ends it
        await under_test.send("x" * 4000)


def test_text_both_ways_and_a_polite_end() -> None:
    async def use() -> None:
        async with ContainerServer() as container, Standin(container.url) as server:
            under_test = transport(server)
            await under_test.open()
            await spoken(under_test, TEXTS)
            await closed(under_test)
            await container.ended.wait()
            assert container.closed == [1000]
            assert [record.ended for record in server.sessions] == ["client"]

    on_loopback(use)


def test_many_frames_in_order_while_others_come() -> None:
    texts = [f"{number} " + "x" * (number % 7 * 600) for number in range(300)]

    async def use() -> None:
        async with ContainerServer() as container, Standin(container.url) as server:
            under_test = transport(server)
            await under_test.open()

            async def send_all() -> None:
                for text in texts:
                    await under_test.send(text)

            sending = asyncio.create_task(send_all())
            assert [await under_test.receive() for _ in texts] == texts
            await sending
            await closed(under_test)

    on_loopback(use)


def test_the_path_and_the_query_reach_the_container() -> None:
    async def use() -> None:
        async with ContainerServer() as container, Standin(container.url) as server:
            under_test = transport(
                server,
                invocation_path="v1/realtime",
                query_string="language=en",
                target_variant="AllTraffic",
            )
            await under_test.open()
            await spoken(under_test, TEXTS)
            await closed(under_test)
            assert container.targets == ["/v1/realtime?language=en"]

    on_loopback(use)


def test_a_file_of_authorities_may_have_comments(tmp_path: Path) -> None:
    async def use() -> None:
        async with ContainerServer() as container, Standin(container.url) as server:
            path = tmp_path / "folder with spaces" / "ca.pem"
            path.parent.mkdir()
            path.write_bytes("# Zertifizierungsstelle für Versuche\n".encode() + server.ca_pem)
            under_test = transport(server, ca_bundle=str(path))
            await under_test.open()
            await spoken(under_test, TEXTS)
            await closed(under_test)

    on_loopback(use)


OPENING = [
    ("abort-tcp", RETRY, "broke"),
    ("stall-tcp", RETRY, "No secure connection"),
    ("stall-tls", RETRY, "does not answer"),
    ("h1", RECONFIGURE, "HTTP/2"),
    ("stall", RETRY, "does not answer"),
    ("delay:30", RETRY, "does not answer"),
    ("rst-early", RETRY, "broke"),
    ("goaway-early", RETRY, "broke"),
    ("abort-early", RETRY, "broke"),
    ("busy", RETRY, "throttled"),
    ("expired-token", RECONFIGURE, "aws sso login"),
    ("http:400/InputValidationError", RECONFIGURE, "describe-endpoint"),
    ("http:400/ThrottlingException", RETRY, "throttled"),
    ("http:403/UnrecognizedClientException", RECONFIGURE, "access key"),
    ("http:403/AccessDeniedException", RECONFIGURE, "InvokeEndpointWithBidirectionalStream"),
    ("http:404", RECONFIGURE, "describe-endpoint"),
    ("http:424/ModelError", RETRY, "did not accept"),
    ("http:429", RETRY, "throttled"),
    ("http:500/InternalServerError", RETRY, "status 500"),
    ("http:503", RETRY, "status 503"),
    ("http-open:400/InputValidationError", RECONFIGURE, "describe-endpoint"),
    ("http-open:403/ExpiredTokenException", RECONFIGURE, "aws sso login"),
    ("http-open:424/ModelError", RETRY, "did not accept"),
    ("http-open:503", RETRY, "status 503"),
]


@pytest.mark.parametrize(("fault", "decision", "words"), OPENING, ids=[row[0] for row in OPENING])
def test_what_goes_wrong_before_it_is_open(fault: str, decision: Decision, words: str) -> None:
    async def use() -> None:
        # The second attempt is ours, to find out about the certificate.
        faults = [fault, fault]
        async with ContainerServer() as container, Standin(container.url, faults=faults) as server:
            under_test = transport(server, limits=SHORT)
            begun = time.monotonic()
            with pytest.raises(EngineError, match=words) as caught:
                await under_test.open()
            assert time.monotonic() - begun < SHORT.total + 2
            assert caught.value.decision is decision
            assert ours() == []
            await closed(under_test)

    on_loopback(use)


def test_a_certificate_that_is_not_trusted_is_known_before_the_sdk_knows() -> None:
    async def use() -> None:
        faults = ["untrusted-ca", "untrusted-ca"]
        async with ContainerServer() as container, Standin(container.url, faults=faults) as server:
            under_test = transport(server, limits=SHORT)
            with pytest.raises(EngineError, match="certificate is not trusted") as caught:
                await under_test.open()
            assert (caught.value.decision, caught.value.field) == (RECONFIGURE, "--ca-bundle")
            await closed(under_test)

    on_loopback(use)


def test_nobody_listens() -> None:
    async def use() -> None:
        async with ContainerServer() as container, Standin(container.url) as server:
            under_test = transport(server, endpoint_url="https://127.0.0.1:9")
            with pytest.raises(EngineError, match="refuses connections") as caught:
                await under_test.open()
            assert (caught.value.decision, caught.value.field) == (RETRY, "--endpoint-url")
            await closed(under_test)

    on_loopback(use)


def test_a_host_that_is_none() -> None:
    async def use() -> None:
        async with ContainerServer() as container, Standin(container.url) as server:
            under_test = transport(server, endpoint_url="https://no-such-host.invalid:8443")
            with pytest.raises(EngineError, match="cannot be found") as caught:
                await under_test.open()
            assert (caught.value.decision, caught.value.field) == (RETRY, "--endpoint-url")
            await closed(under_test)

    on_loopback(use)


IN_MID_STREAM = [
    ("rst@3", RETRY, "has ended"),
    ("goaway@3", RETRY, "has ended"),
    ("abort@3", RETRY, "has ended"),
    ("end@3", RETRY, "has ended"),
    ("cut:0.05", RETRY, "has ended"),
    ("cut:0.05/rst", RETRY, "has ended"),
    ("cut:0.05/error", RETRY, "voxtral|SageMaker|session"),
    ("close:1000@3", RETRY, "has ended"),
    ("close:1001@3", RETRY, "has ended"),
    ("close:1011@3", RETRY, "1011"),
    ("close:1013@3", RETRY, "busy"),
    ("model-error@3", RETRY, "as long as"),
    ("internal-failure@3", RETRY, "fault of its own"),
    ("unknown-exception@3", RETRY, "ExceptionOfTheFuture"),
    ("error-event@3", RETRY, "InternalError"),
    ("bad-crc@3", RETRY, "damaged"),
    ("cut-event@3", RETRY, "damaged"),
    ("initial-response@3", FATAL, "version of the AWS SDK"),
]


@pytest.mark.parametrize(
    ("fault", "decision", "words"), IN_MID_STREAM, ids=[row[0] for row in IN_MID_STREAM]
)
def test_what_goes_wrong_in_mid_stream(fault: str, decision: Decision, words: str) -> None:
    async def use() -> None:
        async with ContainerServer() as container, Standin(container.url, faults=[fault]) as server:
            under_test = transport(server, limits=SHORT)
            await under_test.open()
            with pytest.raises(EngineError, match=words) as caught:
                await talking(under_test)
            assert caught.value.decision is decision
            with pytest.raises(EngineError, match=words):
                await under_test.send("more")
            await closed(under_test)

    on_loopback(use)


@pytest.mark.parametrize("fault", ["rst@3", "goaway@3", "abort@3", "end@3", "bad-crc@3"])
def test_it_dies_while_much_is_on_its_way(fault: str) -> None:
    async def use() -> None:
        async with ContainerServer() as container, Standin(container.url, faults=[fault]) as server:
            under_test = transport(server, limits=SHORT)
            await under_test.open()
            with pytest.raises(EngineError):
                await pouring(under_test)
            await closed(under_test)

    on_loopback(use)


@pytest.mark.parametrize("fault", ["split", "unknown-event@2", "delay:0.2"])
def test_what_is_odd_but_no_fault(fault: str) -> None:
    async def use() -> None:
        async with ContainerServer() as container, Standin(container.url, faults=[fault]) as server:
            under_test = transport(server)
            await under_test.open()
            for _ in range(3):
                await spoken(under_test, TEXTS)
            await closed(under_test)

    on_loopback(use)


def test_a_service_that_takes_nothing() -> None:
    async def use() -> None:
        faults = ["slow-reader:0"]
        async with ContainerServer() as container, Standin(container.url, faults=faults) as server:
            under_test = transport(server, limits=SHORT)
            await under_test.open()
            with pytest.raises(EngineError, match="taken no sound"):
                await pouring(under_test)
            await closed(under_test)

    on_loopback(use)


def test_closing_while_the_service_takes_nothing() -> None:
    async def use() -> None:
        faults = ["slow-reader:0"]
        async with ContainerServer() as container, Standin(container.url, faults=faults) as server:
            under_test = transport(server)
            await under_test.open()
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(pouring(under_test), 0.3)
            await closed(under_test)

    on_loopback(use)


def test_closing_while_the_service_is_silent() -> None:
    async def use() -> None:
        async with (
            ContainerServer() as container,
            Standin(container.url, faults=["mute"]) as server,
        ):
            under_test = transport(server)
            await under_test.open()
            receiving = asyncio.create_task(under_test.receive())
            await under_test.send("hello")
            await closed(under_test)
            with pytest.raises(EngineError, match="was closed"):
                await receiving

    on_loopback(use)


@pytest.mark.parametrize("fault", ["", "stall-tcp", "stall-tls"])
@pytest.mark.parametrize("after", [0.0, 0.01, 0.03, 0.1])
def test_opening_may_be_given_up_at_any_time(fault: str, after: float) -> None:
    async def use() -> None:
        async with ContainerServer() as container, Standin(container.url, faults=[fault]) as server:
            under_test = transport(server)
            opening = asyncio.create_task(under_test.open())
            await asyncio.sleep(after)
            opening.cancel()
            await asyncio.wait({opening})
            await closed(under_test)
            # What was given up has had time to come about, with nobody there.
            await asyncio.sleep(0.05)

    on_loopback(use)


def test_beginning_to_connect_may_be_given_up_at_any_step() -> None:
    async def use() -> None:
        credentials = await Provider().resolve()
        async with ContainerServer() as container, Standin(container.url) as server:
            target = SageMakerTarget(
                endpoint="voxtral", region="eu-west-1", endpoint_url=server.url
            )
            for steps in range(40):
                stream = sagemaker_sdk.SdkStream(target, credentials, server.ca_pem)
                opening = asyncio.create_task(stream.open())
                for _ in range(steps):
                    await asyncio.sleep(0)
                opening.cancel()
                await asyncio.wait({opening})
                await stream.close(polite=False)
                assert ours() == [], steps

    on_loopback(use)


def test_a_wrong_secret() -> None:
    async def use() -> None:
        async with ContainerServer() as container, Standin(container.url) as server:
            keys = Provider(secret_key="wrong")  # noqa: S106 - of a test
            under_test = transport(server, keys=keys)
            with pytest.raises(EngineError, match="signature") as caught:
                await under_test.open()
            assert caught.value.decision is RECONFIGURE
            assert "wrong" not in str(caught.value)
            await closed(under_test)

    on_loopback(use)


def test_a_key_that_is_not_known() -> None:
    async def use() -> None:
        async with ContainerServer() as container, Standin(container.url) as server:
            under_test = transport(server, keys=Provider(access_key="AKIDOFSOMEBODY"))
            with pytest.raises(EngineError, match="access key") as caught:
                await under_test.open()
            assert caught.value.decision is RECONFIGURE
            assert "AKIDOFSOMEBODY" not in str(caught.value)
            await closed(under_test)

    on_loopback(use)


@pytest.mark.parametrize(
    ("ahead", "words"), [(3600.0, "clock is 60 min slow"), (-600.0, "clock is 10 min fast")]
)
def test_a_clock_that_is_wrong(ahead: float, words: str) -> None:
    async def use() -> None:
        def clock() -> float:
            return time.time() + ahead

        async with ContainerServer() as container, Standin(container.url, clock=clock) as server:
            under_test = transport(server)
            with pytest.raises(EngineError, match=words) as caught:
                await under_test.open()
            assert caught.value.decision is RECONFIGURE
            await closed(under_test)

    on_loopback(use)


@pytest.mark.parametrize(
    ("date", "ahead"),
    [
        ("Thu, 01 Jan 2026 00:00:00 GMT", True),
        ("Thu, 01 Jan 2099 00:00:00 GMT", False),
        ("Thu, 01 Jan 2026 00:00:00", None),
        ("yesterday", None),
        ("", None),
    ],
)
def test_the_head_of_an_answer_shows_whose_clock_is_ahead(date: str, ahead: bool | None) -> None:  # noqa: FBT001 - a column of the table
    head = [("Date", date), ("X-Amzn-ErrorType", "com.amazonaws#AccessDeniedException:http://x")]
    answer = sagemaker_sdk._answer(403, head)
    assert (answer.status, answer.code) == (403, "AccessDeniedException")
    found = answer.clock_ahead
    assert (found if found is None else found > 0) is ahead


def test_an_endpoint_that_is_not_there() -> None:
    async def use() -> None:
        async with ContainerServer() as container, Standin(container.url, endpoint="x") as server:
            under_test = transport(server)
            with pytest.raises(EngineError, match="voxtral") as caught:
                await under_test.open()
            assert (caught.value.decision, caught.value.field) == (RECONFIGURE, "--endpoint")
            await closed(under_test)

    on_loopback(use)


def test_a_container_that_is_not_there() -> None:
    async def use() -> None:
        async with Standin("ws://127.0.0.1:9/invocations-bidirectional-stream") as server:
            under_test = transport(server)
            with pytest.raises(EngineError, match="did not accept the session") as caught:
                await under_test.open()
            assert caught.value.decision is RETRY
            await closed(under_test)

    on_loopback(use)


def test_the_sdk_logs_neither_tokens_nor_text(caplog: pytest.LogCaptureFixture) -> None:
    async def use() -> None:
        async with ContainerServer(echo) as container, Standin(container.url) as server:
            under_test = transport(server)
            await under_test.open()
            await spoken(under_test, ["words of somebody"])
            await closed(under_test)

    with caplog.at_level(logging.DEBUG):
        on_loopback(use)
    loggers = {record.name.partition(".")[0] for record in caplog.records}
    assert not loggers & {"smithy_core", "smithy_aws_event_stream", "smithy_http", "awscrt"}


def test_the_sdk_is_the_one_that_was_read() -> None:
    sagemaker_sdk.check()


@pytest.mark.parametrize(
    ("owner", "name"),
    [
        (AWSCRTHTTPClient, "_await_response"),
        (AWSCRTHTTPClient, "_build_new_connection"),
        (AWSCRTHTTPClient, "__init__"),
    ],
)
def test_another_sdk_is_refused_with_its_version(
    monkeypatch: pytest.MonkeyPatch, owner: type, name: str
) -> None:
    monkeypatch.delattr(owner, name)
    with pytest.raises(EngineError, match=r"aws-sdk-sagemaker-runtime-http2 0\.") as caught:
        sagemaker_sdk.check()
    assert caught.value.decision is RECONFIGURE
    assert "surtitle[aws]" in caught.value.remedy


def test_a_stream_class_that_keeps_other_things_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(AIOHttpClientStreamUnified, "__init__", lambda _: None)
    with pytest.raises(EngineError, match="awscrt"):
        sagemaker_sdk.check()
