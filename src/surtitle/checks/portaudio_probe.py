"""Run as a program: loads PortAudio, which may crash or hang, and prints what it finds.

One JSON object a line: `{"version": "19.6.0", "hosts": {"ALSA": 3}}`, the number being
that of inputs, or `{"missing": true}` where the library is not installed.
"""

import json
import sys

__all__ = ["main"]


def main() -> int:
    """Ask PortAudio. Returns the exit code."""
    try:
        import sounddevice  # noqa: PLC0415 - it loads PortAudio, which is what is tried
    except OSError:
        return _say({"missing": True})
    number = int(sounddevice.get_portaudio_version()[0])
    return _say(
        {
            "version": f"{number >> 16}.{number >> 8 & 255}.{number & 255}",
            "hosts": {
                str(host["name"]): sum(
                    int(sounddevice.query_devices(index)["max_input_channels"]) > 0
                    for index in host["devices"]
                )
                for host in sounddevice.query_hostapis()
            },
        }
    )


def _say(answer: dict[str, object]) -> int:
    sys.stdout.write(json.dumps(answer) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
