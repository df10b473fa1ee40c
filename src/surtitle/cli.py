"""The command line: parses, calls, prints."""

import argparse
import os
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from surtitle.core.errors import OutputError, SurtitleError

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program. Returns its exit code."""
    options = _parser().parse_args(arguments)
    if options.data_dir:
        os.environ["SURTITLE_HOME"] = str(Path(options.data_dir).expanduser())
    try:
        return int(_COMMANDS[options.command or "run"](options))
    except SurtitleError as error:
        print(f"surtitle: {error}", file=sys.stderr)
        return error.exit_code
    except ImportError as error:
        # Only the first line: some libraries write an essay.
        what = error.name or str(error).partition("\n")[0]
        print(
            f"surtitle: A library that this needs cannot be loaded ({what}). "
            "See what is missing: surtitle doctor.",
            file=sys.stderr,
        )
        return 1
    except BrokenPipeError:
        return 1  # whoever read our output has gone; there is nobody left to tell
    except KeyboardInterrupt:
        return 130
    finally:
        _let_go_of_output()


def _let_go_of_output() -> None:
    """What could not be written was told; Python must not try again at its very end."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except (OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="surtitle",
        description="Live captions for everything this computer hears. "
        "Without a command: the caption window.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"surtitle {version('surtitle')}")
    parser.add_argument(
        "--data-dir", metavar="FOLDER", help="keep settings and transcripts here (or SURTITLE_HOME)"
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    commands.add_parser(
        "demo",
        help="see the window caption a recorded speech",
        description="Captions a recorded speech in the window. Without a display it prints "
        "the captions, draws the window off screen and prints where the picture is.",
    )
    caption = commands.add_parser(
        "caption",
        help="caption a file, standard input, the microphone or the computer's sound",
        description="Writes captions of a source to standard output or to a file.",
        allow_abbrev=False,
    )
    caption.add_argument(
        "source",
        metavar="SOURCE",
        help="a media file; '-' for raw sound on standard input (16-bit, 16 kHz, mono); "
        "'mic'; 'system'",
    )
    _add_engines(caption)
    caption.add_argument(
        "--format",
        choices=["text", "srt", "vtt", "json"],
        help="default: what the name of the output file says, else text",
    )
    caption.add_argument("--output", metavar="FILE", help="write here, not to standard output")
    caption.add_argument(
        "--pace",
        choices=["real-time", "fast"],
        default="fast",
        help="read a file as it would be heard, or as fast as it can be captioned (default)",
    )
    caption.add_argument("--device", metavar="NAME", help="which microphone or output")
    commands.add_parser("devices", help="what can be listened to")
    commands.add_parser("doctor", help="what works here, what does not, and what to do")
    _add_servers(
        commands.add_parser(
            "serve",
            help="run a speech server on this computer",
            description="Servers for this computer; each runs until it is ended (Ctrl-C).",
            allow_abbrev=False,
        )
    )
    return parser


def _add_engines(parser: argparse.ArgumentParser) -> None:
    """The options about the engine; each is a setting, and what is not given is as it is set."""
    group = parser.add_argument_group(
        "engine", "What is not given here is as in the settings; at first, on this computer."
    )
    group.add_argument(
        "--engine",
        dest="engine.name",
        choices=["on-device", "vllm", "sagemaker"],
        help="what makes the text: this computer, a speech server (vLLM Realtime), or an "
        "Amazon SageMaker endpoint",
    )
    for option, meta, text in (
        ("--url", "URL", "vllm: where the speech server is, such as wss://gpu.home:8000"),
        ("--model", "NAME", "vllm, sagemaker: the model, as the server calls it"),
        ("--api-key-env", "VAR", "vllm: the environment variable with the server's key"),
        ("--ca-bundle", "FILE", "vllm, sagemaker: authorities to trust in place of the system's"),
        ("--endpoint", "NAME", "sagemaker: the endpoint"),
        ("--region", "REGION", "sagemaker: where the endpoint is, such as eu-west-1"),
        ("--profile", "NAME", "sagemaker: the AWS profile with the credentials"),
        ("--invocation-path", "PATH", "sagemaker: path of the WebSocket in the container"),
        ("--query-string", "QUERY", "sagemaker: query of that WebSocket"),
        ("--target-variant", "NAME", "sagemaker: which production variant"),
        ("--endpoint-url", "URL", "sagemaker: where the service is, in place of AWS's address"),
    ):
        name = option.removeprefix("--").replace("-", "_")
        group.add_argument(option, dest=f"engine.{name}", metavar=meta, help=text)
    group.add_argument(
        "--allow-plaintext",
        dest="engine.allow_plaintext",
        action="store_true",
        default=None,
        help="vllm: send the sound unencrypted, which others on the way can hear",
    )
    group.add_argument(
        "--stand-in",
        dest="engine.stand_in",
        action=argparse.BooleanOptionalAction,
        help="go on on this computer while the server is away (default: not for files)",
    )


def _add_servers(parser: argparse.ArgumentParser) -> None:
    servers = parser.add_subparsers(dest="server", metavar="SERVER", title="servers", required=True)
    realtime = servers.add_parser(
        "realtime",
        help="the Realtime API, with the on-device engine behind it",
        description="Makes captions for other programs and computers: speaks vLLM's Realtime API "
        "at /v1/realtime. The speech is recognised on this computer.",
        allow_abbrev=False,
    )
    _add_place(realtime, port=8081)
    realtime.add_argument(
        "--max-sessions",
        metavar="N",
        type=int,
        default=4,
        help="how many are captioned at once; others wait (default: %(default)s)",
    )
    realtime.add_argument(
        "--max-model-len",
        metavar="N",
        type=int,
        default=131_072,
        help="tokens of a session: 39, and one for every 80 ms (default: %(default)s)",
    )
    realtime.add_argument(
        "--model",
        metavar="NAME",
        default="surtitle",
        help="the name that clients ask for (default: %(default)s)",
    )
    realtime.add_argument(
        "--api-key-env",
        metavar="VAR",
        help="the environment variable with the key that clients must bring",
    )
    sagemaker = servers.add_parser(
        "sagemaker",
        help="a stand-in for Amazon SageMaker, to try a container without AWS",
        description="Speaks as the bidirectional stream of Amazon SageMaker does, and passes on "
        "to a container's WebSocket what comes. Programs find it with --endpoint-url and trust "
        "it with --ca-bundle.",
        epilog="Sign with the access key AKIDLOCALSTANDIN and the secret that the environment "
        "variable SURTITLE_STANDIN_SECRET holds here, or else surtitle-local-stand-in.",
        allow_abbrev=False,
    )
    _add_place(sagemaker, port=8443)
    sagemaker.add_argument(
        "--container",
        metavar="URL",
        default="ws://127.0.0.1:8080/invocations-bidirectional-stream",
        help="the container's WebSocket (default: %(default)s)",
    )
    sagemaker.add_argument(
        "--ca-out",
        metavar="FILE",
        type=Path,
        required=True,
        help="write the certificate that programs must trust here",
    )
    sagemaker.add_argument(
        "--endpoint", metavar="NAME", help="the only endpoint there is (default: any will do)"
    )
    sagemaker.add_argument(
        "--max-sessions",
        metavar="N",
        type=int,
        help="how many at once; others are refused (default: any number)",
    )
    sagemaker.add_argument(
        "--session-limit",
        metavar="SECONDS",
        type=float,
        default=1800.0,
        help="how long a session may last (default: %(default)g)",
    )
    sagemaker.add_argument(
        "--cut",
        choices=["end", "error", "rst", "goaway", "abort"],
        default="end",
        help="how a session that has lasted too long is ended (default: %(default)s)",
    )
    sagemaker.add_argument(
        "--fault",
        metavar="NAME",
        action=_Faults,
        default=[],
        help="have something go wrong, such as close:1011@5; given again, it is for the next "
        "attempt; several at once are joined by +; '' is none; 'help' lists them all",
    )


def _add_place(parser: argparse.ArgumentParser, *, port: int) -> None:
    parser.add_argument(
        "--port",
        type=int,
        default=port,
        help="where to listen; 0 takes any that is free (default: %(default)s)",
    )
    parser.add_argument(
        "--host",
        metavar="ADDRESS",
        default="127.0.0.1",
        help="let others in the network come, at this address of this computer "
        "(default: %(default)s, this computer alone)",
    )


class _Faults(argparse.Action):
    """Collects the faults that are ordered; `help` lists those that there are."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,  # noqa: ARG002 - argparse gives it
    ) -> None:
        if values == "help":
            from surtitle.server.faults import describe  # noqa: PLC0415 - for this alone

            print(
                "NAME[:ARGUMENT][@EVENTS]: the argument is what stands in capitals below; a fault"
            )
            print("of a session may wait until so many events have gone to the client.\n")
            print(describe())
            _let_go_of_output()
            parser.exit()
        setattr(namespace, self.dest, [*getattr(namespace, self.dest), values])


def _run(_options: argparse.Namespace) -> int:
    from surtitle.app import run  # noqa: PLC0415 - Qt is heavy, and may not be installed

    return run()


def _demo(_options: argparse.Namespace) -> int:
    from surtitle.demo import run  # noqa: PLC0415 - Qt is heavy, and may not be installed

    return run()


def _caption(options: argparse.Namespace) -> int:
    from surtitle.listening import caption  # noqa: PLC0415 - numpy and PyAV take their time

    return caption(
        options.source,
        form=options.format,
        output=Path(options.output) if options.output else None,
        pace=options.pace,
        device=options.device,
        engine={
            key: value
            for key, value in vars(options).items()
            if key.startswith("engine.") and value is not None
        },
    )


def _devices(_options: argparse.Namespace) -> int:
    from surtitle.listening import describe_devices  # noqa: PLC0415 - as above

    devices = describe_devices()
    try:
        print(devices, flush=True)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError(f"The output cannot be written: {error.strerror}.") from error
    return 0


def _doctor(_options: argparse.Namespace) -> int:
    from surtitle.doctor import run  # noqa: PLC0415 - as above

    return run()


def _serve(options: argparse.Namespace) -> int:
    from surtitle.serving import serve_realtime, serve_sagemaker  # noqa: PLC0415 - as above

    if options.server == "realtime":
        return serve_realtime(
            host=options.host,
            port=options.port,
            model=options.model,
            max_sessions=options.max_sessions,
            max_model_len=options.max_model_len,
            api_key_env=options.api_key_env,
        )
    return serve_sagemaker(
        container=options.container,
        host=options.host,
        port=options.port,
        ca_out=options.ca_out,
        endpoint=options.endpoint,
        session_limit=options.session_limit,
        cut=options.cut,
        max_sessions=options.max_sessions,
        faults=options.fault,
    )


_COMMANDS = {
    "run": _run,
    "demo": _demo,
    "caption": _caption,
    "devices": _devices,
    "doctor": _doctor,
    "serve": _serve,
}
