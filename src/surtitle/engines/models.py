"""The speech models that the on-device engine knows, as data."""

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from surtitle.core.errors import Decision, EngineError

__all__ = ["ELSEWHERE", "PACKAGED", "SpeechModel", "locate"]

ELSEWHERE = (
    "It is made for Linux, Windows on x86-64, and macOS 15 on Apple silicon. Elsewhere a speech "
    "server has to make the captions (--engine vllm), which is not in this version yet."
)
"""What to do where the engine has no build."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeechModel:
    """A model that Moonshine can load."""

    name: str
    """As the settings call it."""
    label: str
    """As a person reads it."""
    languages: tuple[str, ...]
    """BCP 47 tags."""
    architecture: int
    """Moonshine's own number for the kind of model."""
    folder: str
    """Where its files are: absolute, or relative to the assets in Moonshine's wheel."""


PACKAGED = SpeechModel(
    name="moonshine-tiny-en",
    label="Moonshine Tiny",
    languages=("en",),
    architecture=0,
    folder="tiny-en",
)
"""Comes inside the wheel: nothing to download."""


def locate(model: SpeechModel) -> Path:
    """The folder that holds the model's files.

    Raises:
        EngineError: The engine has no build for this computer, or files are missing.
    """
    spec = find_spec("moonshine_voice")
    if spec is None or spec.origin is None:
        raise EngineError(
            "The on-device engine is not available on this computer.",
            remedy=ELSEWHERE,
            decision=Decision.RECONFIGURE,
            field="engine",
        )
    folder = Path(spec.origin).parent / "assets" / model.folder
    if not any(folder.glob("*.ort")):
        raise EngineError(
            f"The files of the speech model {model.label} are missing.",
            remedy="Install Surtitle again.",
            decision=Decision.RECONFIGURE,
            field="engine",
        )
    return folder
