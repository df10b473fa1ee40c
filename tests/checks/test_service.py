"""The doctor asks the speech server that the settings name, and says what is wrong with it."""

import asyncio
import os
import socket
from pathlib import Path

from surtitle.checks.finding import Finding, Level
from surtitle.checks.service import check_service
from surtitle.doctor import Check, examine
from surtitle.engines.on_device import OnDeviceEngine
from surtitle.server.realtime import RealtimeServer
from surtitle.storage.places import Places


def look(url: str | None, *, key: str | None = None) -> list[Finding]:
    findings: list[Finding] = []

    async def main() -> None:
        async with RealtimeServer(
            OnDeviceEngine, host="127.0.0.1", port=0, model="m", api_key=key
        ) as server:
            file = Places.find(os.environ).settings
            if url is not None:
                file.parent.mkdir(parents=True)
                address = url.replace("SERVER", server.url)
                file.write_text(
                    f'version = 1\n[engine]\nname = "vllm"\nurl = "{address}"\n', "utf-8"
                )
            check = Check(subject="The speech server", limit=30.0, work=check_service)
            await examine(check, findings.append)

    asyncio.run(main())
    return findings


def test_nothing_is_said_where_no_server_is_wanted() -> None:
    assert look(None) == []


def test_a_server_that_answers() -> None:
    [finding] = look("SERVER")
    assert finding.level is Level.OK
    assert finding.text.startswith("Speech server 127.0.0.1:")
    assert "(to 127.0.0.1) opens a session in" in finding.text


def test_a_server_that_wants_a_key() -> None:
    [finding] = look("SERVER", key="open sesame")
    assert finding.level is Level.FAIL
    assert "--api-key-env" in finding.remedy
    assert "sesame" not in str(finding)


def test_no_server(tmp_path: Path) -> None:
    del tmp_path
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    [finding] = look(f"ws://127.0.0.1:{port}")
    assert finding.level is Level.FAIL
    assert str(port) in finding.text
    assert finding.remedy


def test_an_address_that_cannot_be() -> None:
    [finding] = look("https://gpu.home")
    assert finding.level is Level.FAIL
    assert "wss://gpu.home" in finding.remedy
