"""AWS credentials from every source people have, by way of botocore; nothing else knows it.

The streaming SDK cannot sign in with SSO or `aws login` by itself. Here they are
asked for in a thread, once for every stream, and stay as they are while it lives:
each event is signed, and the signatures make a chain that a change would break.
"""

import asyncio
import difflib
import logging
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

from surtitle.core.errors import Decision, EngineError

__all__ = ["AwsCredentials", "Credentials", "CredentialsProvider", "configured_region"]

_WITHIN = 10.0
_SESSION_SECONDS = 300.0
"""What credentials must still be good for.

Below ten minutes, at which botocore fetches new ones by force: whatever can renew itself
is never refused. Above the five minutes that a signed event may be old.
"""
_MOST_LISTED = 8
_INSTALL = "Run: pip install 'surtitle[aws]'"

_MEANINGS: Mapping[str, tuple[str, str]] = {
    "NoCredentialsError": ("There are no AWS credentials for the {named}.", "none"),
    "PartialCredentialsError": ("Only a part of the AWS credentials is set.", "partial"),
    "SSOError": ("The SSO session of the {named} is missing or has expired.", "sso"),
    "TokenRetrievalError": ("The SSO session of the {named} is missing or has expired.", "sso"),
    "NoAuthTokenError": ("The SSO session of the {named} is missing or has expired.", "sso"),
    "LoginError": ("The login session of the {named} is missing or has expired.", "login"),
    "RefreshWithMFAUnsupportedError": ("The {named} wants an MFA code.", "mfa"),
    "MetadataRetrievalError": ("The source of AWS credentials cannot be reached.", "network"),
    "HTTPClientError": ("The source of AWS credentials cannot be reached.", "network"),
    "ConnectionError": ("The source of AWS credentials cannot be reached.", "network"),
    "CredentialRetrievalError": ("The AWS credentials of the {named} cannot be fetched.", ""),
    "ConfigParseError": ("The AWS configuration file cannot be read.", "file"),
    "InvalidConfigError": ("The AWS configuration of the {named} is incomplete.", "file"),
    "ConfigNotFound": ("The AWS configuration of the {named} is incomplete.", "file"),
    "MissingDependencyException": ("The {named} needs a part of the SDK that is not here.", "sdk"),
    # What botocore raises when those it has just fetched are old already.
    "RuntimeError": ("The AWS credentials of the {named} have expired.", ""),
    "Exception": ("The AWS credentials of the {named} cannot be used.", ""),
}
"""By the class of botocore's exception, nearest first: what it means, and what helps.

Its own texts are not repeated: they may hold what a program or a service said.
"""

_KEYS = "Put fresh ones into the profile: aws configure{flag}"
_REMEDIES: Mapping[str, str] = {
    "none": "Run: aws configure sso, or: aws login{flag}, or, with keys: aws configure{flag}",
    "partial": "Set both the access key ID and the secret access key.",
    "mfa": "Use a profile that signs in with `aws sso login` or `aws login`.",
    "network": "Check the network connection and the proxy.",
    "file": "Mend ~/.aws/config; then see what this says: {identity}",
    "sdk": _INSTALL,
    "sso": "Run: aws sso login{flag}",
    "login": "Run: aws login{flag}",
    "env": "Put fresh ones into AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and"
    " AWS_SESSION_TOKEN, or use a profile: --profile NAME",
    "shared-credentials-file": _KEYS,
    "config-file": _KEYS,
}
"""What a person has to do: by what is the matter, or by where the credentials come from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """What one stream is signed with. Its repr tells nothing of it.

    Args:
        access_key: The access key ID.
        secret_key: What belongs to it.
        token: Session token of temporary credentials, else empty.
        expires: When they end, with its time zone; None if never or unknown.
        renewal: What a person has to do once they are refused.
    """

    access_key: str = field(repr=False)
    secret_key: str = field(repr=False)
    token: str = field(default="", repr=False)
    expires: datetime | None = None
    renewal: str = "Run: aws configure"


class CredentialsProvider(Protocol):
    """Whoever can get credentials for a stream that is about to begin."""

    async def resolve(self) -> Credentials:
        """Fresh credentials, in at most 10 s. Raises EngineError."""


class AwsCredentials:
    """A provider that looks wherever the AWS command line looks.

    Args:
        profile: Name of the profile; empty for the environment, then the default profile.
        session_seconds: What the credentials must still be good for.
        within: Seconds that getting them may take.
        load: What gets them, in a thread; raises EngineError.
        now: The time of day.
    """

    def __init__(
        self,
        profile: str = "",
        *,
        session_seconds: float = _SESSION_SECONDS,
        within: float = _WITHIN,
        load: Callable[[str], Credentials] | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._profile = profile
        self._session_seconds = session_seconds
        self._within = within
        self._load = load or _load
        self._now = now

    async def resolve(self) -> Credentials:
        """Get credentials that will last for a while.

        Raises:
            EngineError: There are none, they end too soon, or do not come in time.
        """
        try:
            async with asyncio.timeout(self._within):
                found = await _in_daemon_thread(lambda: self._load(self._profile))
        except TimeoutError as error:
            raise EngineError(
                f"AWS credentials did not come within {self._within:g} s.",
                remedy=f"See whether this answers: {_identity(self._profile)}",
                decision=Decision.RETRY,
                field="--profile",
            ) from error
        if found.expires is not None:
            left = found.expires - self._now()
            if left < timedelta(seconds=self._session_seconds):
                ended = left <= timedelta()
                raise EngineError(
                    "The AWS credentials have expired."
                    if ended
                    else f"The AWS credentials expire in {left.seconds} s.",
                    remedy=found.renewal,
                    decision=Decision.RECONFIGURE,
                    field="--profile",
                )
        return found


class _Session(Protocol):
    """What is used of botocore's session, which has no types."""

    @property
    def profile(self) -> object: ...

    @property
    def full_config(self) -> Mapping[str, Any]: ...

    def get_config_variable(self, logical_name: str) -> object: ...

    def get_component(self, name: str) -> Any: ...  # noqa: ANN401 - no types there

    def get_credentials(self) -> Any: ...  # noqa: ANN401 - same


def configured_region(profile: str = "") -> str:
    """Region that the environment or the profile names, empty if none. No network; blocks.

    Raises:
        EngineError: botocore is not installed, or there is no such profile.
    """
    session = _session(profile)
    try:
        return str(session.get_config_variable("region") or "")
    except Exception as error:
        raise _meant(error, session, profile) from error


async def _in_daemon_thread[T](work: Callable[[], T]) -> T:
    """Run in a thread that nobody has to wait for: it may hang in somebody else's program."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Callable[[], T]] = loop.create_future()

    def tell(outcome: Callable[[], T]) -> None:
        if not done.done():
            done.set_result(outcome)

    def run() -> None:
        try:
            value = work()
        except BaseException as error:  # noqa: BLE001 - it is raised where somebody waits
            failure = error

            def outcome() -> T:
                raise failure
        else:

            def outcome() -> T:
                return value

        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(tell, outcome)

    threading.Thread(target=run, name="aws-credentials", daemon=True).start()
    return (await done)()


def _session(profile: str) -> _Session:
    try:
        from botocore.session import Session  # noqa: PLC0415 - an extra, and slow to load
    except ImportError as error:
        raise EngineError(
            "The AWS SDK is not installed.", remedy=_INSTALL, decision=Decision.RECONFIGURE
        ) from error
    # It logs what it is answered, tokens included, and tracebacks of what is told here anyway.
    logging.getLogger("botocore").setLevel(logging.CRITICAL)
    session: _Session = Session(profile=profile or None)
    return session


def _load(profile: str) -> Credentials:
    """Ask botocore; in a thread, for it may ask files, programs and the network."""
    session = _session(profile)
    try:
        chain = session.get_component("credential_provider")
        # It would ask for the code on a terminal that the desktop application has not got.
        chain.get_provider("assume-role")._prompter = _no_code  # noqa: SLF001 - no other way
        found = session.get_credentials()
        frozen = found.get_frozen_credentials() if found is not None else None
    except EngineError:
        raise
    except Exception as error:
        raise _meant(error, session, profile) from error
    named = profile or _chosen(session)
    if frozen is None or not frozen.access_key:
        raise _error("NoCredentialsError", named)
    if not frozen.secret_key:
        raise _error("PartialCredentialsError", named)
    return Credentials(
        access_key=frozen.access_key,
        secret_key=frozen.secret_key,
        token=frozen.token or "",
        expires=getattr(found, "_expiry_time", None),
        renewal=_remedy(str(found.method), named),
    )


def _no_code(_prompt: str) -> str:
    raise _error("RefreshWithMFAUnsupportedError", "")


def _chosen(session: _Session) -> str:
    """The profile that the environment names."""
    return str(session.profile or "")


def _profiles(session: _Session) -> Mapping[str, Mapping[str, object]]:
    try:
        profiles: Mapping[str, Mapping[str, object]] = session.full_config.get("profiles", {})
    except Exception:  # noqa: BLE001 - a file that cannot be read is what is being told already
        return {}
    return profiles


def _meant(error: BaseException, session: _Session, profile: str) -> EngineError:
    """Say what an exception of botocore's means."""
    classes = [each.__name__ for each in type(error).__mro__]
    if "ProfileNotFound" in classes:
        return _no_profile(session, profile)
    named = profile or _chosen(session)
    profiles = _profiles(session)
    program = "credential_process" in profiles.get(named or "default", {})
    if program and {"CredentialRetrievalError", "OSError", "ValueError"} & {*classes}:
        return _error("", named, message="The credential_process of the {named} failed.")
    if "ClientError" in classes:
        response = getattr(error, "response", {})
        return _refused(str(response.get("Error", {}).get("Code", "")), named)
    return _error(next((name for name in classes if name in _MEANINGS), "Exception"), named)


def _error(kind: str, profile: str, *, message: str = "", remedy: str = "") -> EngineError:
    meaning, help_kind = _MEANINGS.get(kind, ("", kind))
    named = f"AWS profile {_shown(profile)}" if profile else "default AWS profile"
    return EngineError(
        (message or meaning).format(named=named),
        remedy=remedy or _remedy(help_kind, profile),
        decision=Decision.RETRY if help_kind == "network" else Decision.RECONFIGURE,
        field="--profile",
    )


def _refused(code: str, profile: str) -> EngineError:
    """The sign-in or role service said no."""
    if code.startswith(("Throttling", "TooManyRequests", "Internal", "ServiceUnavailable")):
        return _error("network", profile, message="The source of AWS credentials is overloaded.")
    if "Expired" in code:
        return _error("", profile, message="What the {named} signs in with has expired.")
    if code.startswith(("AccessDenied", "Forbidden")):
        return _error(
            "",
            profile,
            message="The {named} may not take on the role it names.",
            remedy="Ask whoever runs the AWS account to allow sts:AssumeRole, or name another.",
        )
    return _error("", profile, message="AWS does not accept what the {named} signs in with.")


def _no_profile(session: _Session, profile: str) -> EngineError:
    wanted = profile or _chosen(session)
    known = sorted(_profiles(session))
    if near := difflib.get_close_matches(wanted, known, n=3):
        remedy = f"Did you mean {' or '.join(near)}?"
    elif known:
        more = len(known) - _MOST_LISTED
        rest = f" and {more} more" if more > 0 else ""
        remedy = f"There are: {', '.join(known[:_MOST_LISTED])}{rest}."
    else:
        remedy = "There are none; run: aws configure sso"
    return EngineError(
        f"There is no AWS profile {_shown(wanted)}.",
        remedy=remedy,
        decision=Decision.RECONFIGURE,
        field="--profile" if profile else "AWS_PROFILE",
    )


def _remedy(kind: str, profile: str) -> str:
    help_ = _REMEDIES.get(kind, "Sign in again, then see what this says: {identity}")
    return help_.format(flag=_flag(profile), identity=_identity(profile))


def _identity(profile: str) -> str:
    return f"aws sts get-caller-identity{_flag(profile)}"


def _flag(profile: str) -> str:
    if not profile:
        return ""
    plain = all(letter.isalnum() or letter in "-_./@+" for letter in profile)
    return f" --profile {profile}" if plain else f' --profile "{profile}"'


def _shown(name: str) -> str:
    return repr(name[:60])
