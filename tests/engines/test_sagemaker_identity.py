"""What a stream is signed with, against the stand-in, which checks every event's signature."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from fakes.container import ContainerServer
from surtitle.core.errors import Decision, EngineError
from surtitle.core.sagemaker_target import SageMakerTarget
from surtitle.engines.aws_credentials import AwsCredentials, Credentials
from surtitle.engines.sagemaker import Limits, SageMakerTransport
from surtitle.server.sagemaker import Standin
from surtitle.server.sigv4 import STANDIN_CREDENTIALS

LIMIT = 20.0
"""Seconds after which a test that waits has failed."""
MINE = Credentials(
    access_key=STANDIN_CREDENTIALS.access_key,
    secret_key=STANDIN_CREDENTIALS.secret,
    token="a-token",  # noqa: S106 - of a test
)
KNOWN = replace(STANDIN_CREDENTIALS, session_token=MINE.token)


class Source:
    """Where credentials come from; it has other ones each time."""

    def __init__(self, *found: Credentials) -> None:
        self.found = list(found)
        self.asked = 0

    def load(self, _profile: str) -> Credentials:
        self.asked += 1
        return self.found.pop(0)


def on_loopback(use: Callable[[Standin], Awaitable[None]]) -> None:
    async def main() -> None:
        async with (
            asyncio.timeout(LIMIT),
            ContainerServer() as container,
            Standin(container.url, credentials=KNOWN) as server,
        ):
            await use(server)

    asyncio.run(main())


def transport(server: Standin, source: Source) -> SageMakerTransport:
    target = SageMakerTarget(
        endpoint="voxtral",
        region="eu-west-1",
        endpoint_url=server.url,
        ca_bundle=str(server.ca_path),
    )
    return SageMakerTransport(
        target,
        credentials=AwsCredentials(load=source.load),
        limits=Limits(total=4.0, connect=2.0, answer=2.0),
    )


def test_a_stream_keeps_what_it_began_with_and_the_next_one_gets_fresh_ones() -> None:
    other = replace(MINE, secret_key="another")  # noqa: S106 - of a test
    source = Source(MINE, MINE, other)

    async def use(server: Standin) -> None:
        for stream in range(2):
            under_test = transport(server, source)
            await under_test.open()
            assert source.asked == stream + 1
            for number in range(30):
                await under_test.send(str(number))
                assert await under_test.receive() == str(number)
            assert source.asked == stream + 1, "not asked in mid-stream"
            await under_test.close()

    before = dict(os.environ)
    on_loopback(use)
    assert dict(os.environ) == before
    assert source.found == [other]


def test_a_token_belongs_to_the_key() -> None:
    source = Source(MINE, replace(MINE, token=""))

    async def use(server: Standin) -> None:
        with_token = transport(server, source)
        await with_token.open()
        await with_token.close()
        without = transport(server, source)
        with pytest.raises(EngineError) as caught:
            await without.open()
        assert caught.value.decision is Decision.RECONFIGURE
        await without.close()

    on_loopback(use)
