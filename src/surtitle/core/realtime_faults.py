"""What can go wrong with a Realtime server, in words for a person.

Nothing that a server says is repeated but the name of its error: its texts may
quote what was sent to it.
"""

import re

from surtitle.core.errors import Decision, EngineError

__all__ = [
    "ended_early",
    "foreign",
    "model_unknown",
    "not_answering",
    "not_created",
    "not_done",
    "overfull",
    "refused",
    "reported",
    "restless",
    "stalled",
    "unreadable",
]

_BUSY_AGAIN = 2.0
"""Seconds after which a full server is asked again."""
_CODE = re.compile(r"[a-z0-9_.-]{1,40}", re.IGNORECASE)


def not_created(seconds: float) -> EngineError:
    """No session.created came."""
    return EngineError(
        f"The speech server accepted the connection but said nothing for {seconds:.0f} s.",
        remedy="Check that --url leads to a Realtime server, such as vLLM's.",
        decision=Decision.RETRY,
        field="--url",
    )


def foreign() -> EngineError:
    """The server speaks the other protocol."""
    return EngineError(
        "The server at this address speaks another Realtime protocol than vLLM's.",
        remedy="Give --url the address of a vLLM Realtime server, ending in /v1/realtime.",
        decision=Decision.RECONFIGURE,
        field="--url",
    )


def unreadable() -> EngineError:
    """Too much of what came is no message."""
    return EngineError(
        "The speech server sends messages that cannot be read.",
        remedy="Check that nothing between here and the server changes what it sends.",
        decision=Decision.RETRY,
        field="--url",
    )


def model_unknown(model: str) -> EngineError:
    """Neither the model asked for nor the server's own."""
    asked = f"“{model}”" if model else "“” (no name)"
    also = ", nor one without a name (“”)" if model else ""
    return EngineError(
        f"The speech server has no model {asked}{also}.",
        remedy="Give --model the name that the server lists under /v1/models.",
        decision=Decision.RECONFIGURE,
        field="--model",
    )


def refused() -> EngineError:
    """The server does not understand how it is told the model."""
    return EngineError(
        "The speech server does not understand how its model is chosen.",
        remedy="Give --url the address of a vLLM Realtime server, of version 0.17 or newer.",
        decision=Decision.RECONFIGURE,
        field="--url",
    )


def reported(code: str) -> EngineError:
    """The server sent an error."""
    name = code if _CODE.fullmatch(code) else "of unknown kind"
    return EngineError(
        f"The speech server reported an error ({name}).",
        remedy="If this happens again, look into the server's log.",
        decision=Decision.RETRY,
    )


def not_answering() -> EngineError:
    """Connected, and sound is sent, but it has never answered."""
    return EngineError(
        "The speech server accepted the connection but does not answer: it may be full.",
        remedy="Wait until another session ends, or let the server take more at once.",
        decision=Decision.RETRY,
        retry_after=_BUSY_AGAIN,
    )


def stalled(seconds: float) -> EngineError:
    """It answered, and stopped."""
    return EngineError(
        f"The speech server has not answered for {seconds:.0f} s.",
        remedy="If this happens again, the server is too slow or hangs: look into its log.",
        decision=Decision.RETRY,
    )


def not_done() -> EngineError:
    """It does not say that it has heard all."""
    return EngineError(
        "The speech server does not finish what it was sent.",
        remedy="If this happens again, look into the server's log.",
        decision=Decision.RETRY,
    )


def ended_early() -> EngineError:
    """It ended before it had heard everything."""
    return EngineError(
        "The speech server stopped before it had heard everything.",
        remedy="If this happens again, start the server with a longer --max-model-len.",
        decision=Decision.RETRY,
    )


def restless() -> EngineError:
    """It ends again and again without hearing anything."""
    return EngineError(
        "The speech server keeps ending the session as soon as it begins.",
        remedy="If this happens again, look into the server's log.",
        decision=Decision.RETRY,
    )


def overfull() -> EngineError:
    """More sound waits for the server than may."""
    return EngineError(
        "The speech server takes no more sound.",
        remedy="If this happens again, the server is too slow: look into its log.",
        decision=Decision.RETRY,
    )
