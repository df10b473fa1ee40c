"""The servers that a scenario is played against: the real one, and ours with an engine that counts.

`packaging/dev.py vllm` starts three of the real ones and says in the environment
where they are.
"""

import asyncio
import os
import signal
import urllib.request
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest

from conformance.counting import CountingEngine
from surtitle.server.realtime import RealtimeServer

__all__ = ["BOTH", "MODEL", "REAL", "Kind", "Served", "serving"]

type Kind = Literal["ours", "vLLM"]
type Config = Literal["MAIN", "SHORT", "KEYED"]

BOTH = pytest.mark.parametrize("kind", ["ours", "vLLM"])
REAL = pytest.mark.parametrize("kind", ["vLLM"])
MODEL = "mistralai/Voxtral-Mini-4B-Realtime-2602"
_KEY = "conformance"


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """A server that runs."""

    url: str
    key: str
    pid: int = 0
    """Of the real one's main process."""
    stop: Callable[[], Awaitable[None]] | None = None
    """Ends ours at once."""

    async def terminate(self) -> None:
        """End it as an operator does."""
        if self.stop is not None:
            await self.stop()
        else:
            os.kill(self.pid, signal.SIGTERM)

    async def metric(self, name: str) -> float:
        """One of the numbers that the real server tells about itself."""
        url = self.url.replace("ws://", "http://").replace("/v1/realtime", "/metrics")
        text = await asyncio.to_thread(_fetch, url)
        values = [line.split()[-1] for line in text.splitlines() if line.startswith(name)]
        return sum(map(float, values))

    def engine_processes(self) -> list[int]:
        """The real server's children that do the work, and theirs."""
        found: list[int] = []
        parents = {self.pid}
        while parents:
            born = [pid for pid, parent, name in _processes() if parent in parents and name]
            parents = set(born)
            found += born
        return found

    def signal_engine(self, number: signal.Signals) -> None:
        for pid in self.engine_processes():
            os.kill(pid, number)


@asynccontextmanager
async def serving(
    kind: Kind,
    config: Config = "MAIN",
    *,
    make_engine: Callable[[], CountingEngine] = CountingEngine,
) -> AsyncIterator[Served]:
    """A server of ours, made for this, or the address of a real one; skips if there is none."""
    async with AsyncExitStack() as stack:
        key = _KEY if config == "KEYED" else ""
        if kind == "ours":
            server = RealtimeServer(
                make_engine,
                model=MODEL,
                api_key=key,
                max_sessions=2 if config == "SHORT" else 8,
                max_model_len=200 if config == "SHORT" else 4096,
            )
            await stack.enter_async_context(server)
            yield Served(url=server.url, key=key, stop=stack.aclose)
            return
        prefix = f"SURTITLE_VLLM_{config}"
        url = os.environ.get(f"{prefix}_URL")
        if not url:
            pytest.skip("no vLLM server: python3 packaging/dev.py vllm starts it")
        yield Served(
            url=url,
            key=os.environ.get(f"{prefix}_KEY", ""),
            pid=int(os.environ.get(f"{prefix}_PID", "0")),
        )


def _fetch(url: str) -> str:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(url, timeout=5) as answer:
        text: bytes = answer.read()
    return text.decode()


def _processes() -> list[tuple[int, int, bool]]:
    """Id, parent, and whether it is one of the engine's, of every process."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            stat = (folder / "stat").read_text()
        except OSError:  # it is gone
            continue
        name, _, rest = stat.partition("(")[2].rpartition(")")
        found.append((int(folder.name), int(rest.split()[1]), name.startswith("VLLM::")))
    return found
