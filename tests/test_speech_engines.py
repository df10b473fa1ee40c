"""What the settings ask for is what is made: the limits that keep clear of a service's own."""

import asyncio

import pytest

from surtitle.captioner import Engine
from surtitle.core.settings import Setting, Settings
from surtitle.engines.realtime import RealtimeEngine
from surtitle.relay import Engines
from surtitle.speech_engines import chosen_engines

SAGEMAKER = {"engine.name": "sagemaker", "engine.endpoint": "voxtral", "engine.region": "eu-west-1"}
VLLM = {
    "engine.name": "vllm",
    "engine.url": "wss://gpu.test/v1/realtime",
    "engine.api_key_env": "VOXTRAL_KEY",
}
SAMPLE_RATE = 16_000


def chosen(values: dict[str, str], *, stand_in: bool = False) -> Engines[Engine]:
    settings = Settings()
    for name, value in values.items():
        settings = settings.with_value(name, value)
    return asyncio.run(chosen_engines(settings, stand_in=stand_in))


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VOXTRAL_KEY", "a-key")


def test_a_stream_to_sagemaker_is_replaced_in_time() -> None:
    """The service cuts it after 30 minutes; nobody may have paused for a while before."""
    renew_after = chosen(SAGEMAKER).renew_after
    assert renew_after is not None
    assert 20 * 60 <= renew_after <= 25 * 60


def test_a_server_of_ones_own_has_no_such_limit() -> None:
    assert chosen(VLLM).renew_after is None


@pytest.mark.parametrize("values", [SAGEMAKER, VLLM])
def test_a_generation_ends_long_before_a_small_context_is_full(values: dict[str, str]) -> None:
    """16,384 tokens were seen to be full after 15 minutes."""
    engine = chosen(values).chosen()
    assert isinstance(engine, RealtimeEngine)
    renew_after = engine._client._limits.renew_after
    assert renew_after is not None
    assert renew_after <= 10 * 60 * SAMPLE_RATE


@pytest.mark.parametrize("values", [SAGEMAKER, VLLM])
def test_sessions_are_separate_but_know_of_each_others_doubts(values: dict[str, str]) -> None:
    make = chosen(values).chosen
    one, other = make(), make()
    assert isinstance(one, RealtimeEngine)
    assert isinstance(other, RealtimeEngine)
    assert one._client is not other._client
    assert one._transport is not other._transport
    assert one._doubts is other._doubts


@pytest.mark.parametrize(("stand_in", "there"), [(True, True), (False, False)])
def test_another_engine_goes_on_only_where_it_may(*, stand_in: bool, there: bool) -> None:
    assert (chosen(VLLM, stand_in=stand_in).stand_in is not None) == there


def test_the_settings_name_where_a_key_is_and_never_hold_one() -> None:
    names = {name for name, value in vars(Settings).items() if isinstance(value, Setting)}
    assert "engine_url" in names
    secret = {n for n in names if any(w in n for w in ("key", "secret", "token", "password"))}
    assert secret == {"engine_api_key_env"}
