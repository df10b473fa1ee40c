"""Which engine makes the text: wires what the settings ask for."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from surtitle.captioner import Engine
from surtitle.core.audio import SAMPLE_RATE
from surtitle.core.errors import UsageError
from surtitle.core.realtime_actions import Limits
from surtitle.core.settings import Settings
from surtitle.engines.on_device import OnDeviceEngine
from surtitle.engines.transport import Transport
from surtitle.relay import Engines
from surtitle.storage.secrets import Secrets

__all__ = ["chosen_engines"]

_GENERATION = 300 * SAMPLE_RATE
"""Sound after which a generation ends at the next pause: an old one costs the server more,
and the model does not look back further than eleven minutes."""
_STREAM = 24 * 60.0
"""Seconds after which a stream to SageMaker is replaced: the service cuts it after 30 minutes."""


async def chosen_engines(settings: Settings, *, stand_in: bool) -> Engines[Engine]:
    """What makes engine sessions, as the settings say.

    Args:
        settings: Their `engine` section, that is.
        stand_in: Whether the on-device engine goes on while a service is away.

    Raises:
        SurtitleError: What is set cannot be meant, or the keyring does not open.
    """
    if settings.engine_name == "on-device":
        return Engines(chosen=OnDeviceEngine)
    make, renew_after = await _SERVICES[settings.engine_name](settings)
    return Engines(
        chosen=make,
        stand_in=OnDeviceEngine if stand_in else None,
        away=settings.engine_stand_in_after,
        renew_after=renew_after,
    )


type _Service = tuple[Callable[[], Engine], float | None]


async def _vllm(settings: Settings) -> _Service:
    # Only now: not everybody has a speech server.
    from surtitle.core.server_address import parse_server_address  # noqa: PLC0415 - see above
    from surtitle.engines.websocket import WebSocketTransport  # noqa: PLC0415 - same

    if not settings.engine_url:
        raise UsageError(
            "No address of a speech server is given.",
            remedy="Give it, such as: --url wss://gpu.home:8000/v1/realtime",
            field="--url",
        )
    address = parse_server_address(
        settings.engine_url, allow_plaintext=settings.engine_allow_plaintext
    )
    key = await Secrets().read(address.name, variable=settings.engine_api_key_env or None)
    bundle = _bundle(settings)

    def transport() -> WebSocketTransport:
        trusted = Path(bundle) if bundle else None
        return WebSocketTransport(address, key=key or "", ca_bundle=trusted)

    return _sessions(settings, transport, f"Speech server {address.server}"), None


async def _sagemaker(settings: Settings) -> _Service:
    from surtitle.core.sagemaker_target import SageMakerTarget  # noqa: PLC0415 - see above
    from surtitle.engines.aws_credentials import (  # noqa: PLC0415 - same
        AwsCredentials,
        configured_region,
    )
    from surtitle.engines.sagemaker import SageMakerTransport  # noqa: PLC0415 - same

    profile = settings.engine_profile
    region = settings.engine_region or await asyncio.to_thread(configured_region, profile)
    target = SageMakerTarget(
        endpoint=settings.engine_endpoint,
        region=region,
        invocation_path=settings.engine_invocation_path,
        query_string=settings.engine_query_string,
        target_variant=settings.engine_target_variant,
        endpoint_url=settings.engine_endpoint_url,
        ca_bundle=_bundle(settings),
        profile=profile,
    )
    credentials = AwsCredentials(profile)

    def transport() -> SageMakerTransport:
        return SageMakerTransport(target, credentials=credentials)

    return _sessions(settings, transport, f"SageMaker {target.endpoint}"), _STREAM


def _bundle(settings: Settings) -> str:
    bundle = settings.engine_ca_bundle
    return str(Path(bundle).expanduser()) if bundle else ""


def _sessions(
    settings: Settings, transport: Callable[[], Transport], name: str
) -> Callable[[], Engine]:
    from surtitle.engines.realtime import Doubts, RealtimeEngine  # noqa: PLC0415 - see above
    from surtitle.engines.voice_detector import voice_detector  # noqa: PLC0415 - same

    doubts = Doubts()

    def make() -> Engine:
        return RealtimeEngine(
            transport(),
            voice_detector,
            model=settings.engine_model,
            name=name,
            doubts=doubts,
            limits=Limits(renew_after=_GENERATION),
        )

    return make


_SERVICES: dict[str, Callable[[Settings], Awaitable[_Service]]] = {
    "vllm": _vllm,
    "sagemaker": _sagemaker,
}
