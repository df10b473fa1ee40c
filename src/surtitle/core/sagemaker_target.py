"""Which SageMaker endpoint is meant, checked here because the AWS SDK checks nothing of it."""

import re
from dataclasses import dataclass

from surtitle.core.errors import Decision, SettingsError

__all__ = ["SageMakerTarget"]

_NAME = re.compile(r"[a-zA-Z0-9](-*[a-zA-Z0-9])*")
_NAME_LONGEST = 63
_REGION = re.compile(r"[a-z]{2,5}(-[a-z]+)+-[0-9]{1,2}")
_SEGMENTS = re.compile(r"[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*")
_PATH_LONGEST = 100
_LETTER = r"(?:[A-Za-z0-9._~-]|%[0-9A-Fa-f]{2})"
_QUERY = re.compile(rf"{_LETTER}+={_LETTER}*(&{_LETTER}+={_LETTER}*)*")
_QUERY_LONGEST = 2048
_URL = re.compile(
    r"https://(?:\[(?P<address>[0-9a-f:.]+)\]|(?P<name>[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?))"
    r"(?::(?P<port>[0-9]{1,5}))?/?",
    re.IGNORECASE | re.ASCII,
)
_PORTS = range(1, 65_536)
_PORT = 8443
"""Of the service in every partition; the SDK's own rule leaves it out."""
_HTTPS = 443

_PARTITIONS = (
    ("cn-", "aws-cn", "amazonaws.com.cn"),
    ("us-gov-", "aws-us-gov", "amazonaws.com"),
    ("us-isob-", "aws-iso-b", "sc2s.sgov.gov"),
    ("us-isof-", "aws-iso-f", "csp.hci.ic.gov"),
    ("us-iso-", "aws-iso", "c2s.ic.gov"),
    ("eu-isoe-", "aws-iso-e", "cloud.adc-e.uk"),
    ("eusc-", "aws-eusc", "amazonaws.eu"),
    ("", "aws", "amazonaws.com"),
)
"""What a region's name begins with, its partition, and the suffix of the hosts there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SageMakerTarget:
    """An endpoint, where it is and how it wants to be called; only valid ones can be made.

    Args:
        endpoint: Name of the endpoint.
        region: AWS region it is in, such as `eu-west-1`.
        invocation_path: Path of the WebSocket in the container, without a leading slash;
            empty for SageMaker's default.
        query_string: Query of that WebSocket, without a leading question mark; may be empty.
        target_variant: The production variant to be used; empty for any.
        endpoint_url: Where the service is, in place of AWS's own address; `https` only.
        ca_bundle: PEM file of the authorities to trust in place of the system's; may be empty.
        profile: AWS profile whose credentials are used; empty for whatever is configured.

    Raises:
        SettingsError: A value cannot be; its field is the option's name.
    """

    endpoint: str
    region: str
    invocation_path: str = ""
    query_string: str = ""
    target_variant: str = ""
    endpoint_url: str = ""
    ca_bundle: str = ""
    profile: str = ""

    def __post_init__(self) -> None:
        """Check every value."""
        if not self.endpoint:
            raise _wrong(
                "--endpoint",
                "No SageMaker endpoint is given.",
                "Give its name: --endpoint NAME. `aws sagemaker list-endpoints` lists them.",
            )
        _check_name("--endpoint", "endpoint", self.endpoint)
        if not self.region:
            raise _wrong(
                "--region",
                "No AWS region is given.",
                "Give the one the endpoint is in, such as: --region us-east-1",
            )
        if not _REGION.fullmatch(self.region):
            raise _wrong(
                "--region",
                f"{_shown(self.region)} cannot be the name of an AWS region.",
                "Regions are called like us-east-1 or eu-west-1.",
            )
        if self.target_variant:
            _check_name("--target-variant", "production variant", self.target_variant)
        self._check_path()
        self._check_query()
        if self.endpoint_url:
            _check_url(self.endpoint_url)
        for field, value in (("--profile", self.profile), ("--ca-bundle", self.ca_bundle)):
            if not value.isprintable():
                raise _wrong(
                    field,
                    f"{_shown(value)} has characters that cannot be.",
                    "Write it on one line.",
                )

    @property
    def url(self) -> str:
        """Address of the service: the port is always in it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"https://{host}:{self.port}"

    @property
    def host(self) -> str:
        """Name of the machine that is called."""
        if found := _URL.fullmatch(self.endpoint_url):
            return (found["address"] or found["name"]).lower()
        _, suffix = _partition(self.region)
        return f"runtime.sagemaker.{self.region}.{suffix}"

    @property
    def port(self) -> int:
        """Its port."""
        if found := _URL.fullmatch(self.endpoint_url):
            return int(found["port"] or _HTTPS)
        return _PORT

    @property
    def arn(self) -> str:
        """The endpoint's ARN as a policy may name it, for any account."""
        return (
            f"arn:{_partition(self.region)[0]}:sagemaker:{self.region}:*:endpoint/{self.endpoint}"
        )

    @property
    def place(self) -> str:
        """Where the sound goes, for a person."""
        if self.endpoint_url:
            return f"to {self.endpoint} at {self.host}"
        return f"to {self.endpoint} on SageMaker in {self.region}"

    def _check_path(self) -> None:
        path, field = self.invocation_path, "--invocation-path"
        if path.startswith("/"):
            raise _wrong(
                field,
                f"The invocation path {_shown(path)} begins with a slash.",
                "Leave the first slash out, as in: v1/realtime",
            )
        if len(path) > _PATH_LONGEST:
            raise _wrong(
                field,
                f"The invocation path is {len(path)} characters long.",
                f"At most {_PATH_LONGEST} are allowed.",
            )
        if path and not _SEGMENTS.fullmatch(path):
            raise _wrong(
                field,
                f"{_shown(path)} cannot be an invocation path.",
                "Letters of a-z, digits, dots, hyphens and underscores are allowed,"
                " with single slashes between them, as in: v1/realtime",
            )

    def _check_query(self) -> None:
        # Its value may be a secret of the user's, so it is not repeated.
        query, field = self.query_string, "--query-string"
        if query.startswith("?"):
            raise _wrong(
                field,
                "The query string begins with a question mark.",
                "Leave it out, as in: language=en&mode=live",
            )
        if len(query) > _QUERY_LONGEST:
            raise _wrong(
                field,
                f"The query string is {len(query)} characters long.",
                f"At most {_QUERY_LONGEST} are allowed.",
            )
        if query and not _QUERY.fullmatch(query):
            raise _wrong(
                field,
                "The query string is not of the form name=value&name=value.",
                "Write anything but letters of a-z, digits and . _ ~ - as %XX.",
            )


def _partition(region: str) -> tuple[str, str]:
    """Partition and host suffix of a region."""
    return next(found[1:] for found in _PARTITIONS if region.startswith(found[0]))


def _check_name(field: str, what: str, value: str) -> None:
    if len(value) > _NAME_LONGEST:
        raise _wrong(
            field,
            f"The name of the {what} is {len(value)} characters long.",
            f"At most {_NAME_LONGEST} are allowed.",
        )
    if not _NAME.fullmatch(value):
        raise _wrong(
            field,
            f"{_shown(value)} cannot be the name of a SageMaker {what}.",
            "Letters of a-z, digits and hyphens between them are allowed;"
            " give the name alone, not an ARN or URL.",
        )


def _check_url(url: str) -> None:
    # It is not repeated: some people write a password into it.
    field = "--endpoint-url"
    if not url.lower().startswith("https://"):
        raise _wrong(
            field,
            "The endpoint URL does not begin with https://.",
            "The service speaks HTTP/2 over TLS only: https://HOST:8443",
        )
    found = _URL.fullmatch(url)
    if found is None or int(found["port"] or _HTTPS) not in _PORTS:
        raise _wrong(
            field,
            "The endpoint URL is not just a host and a port.",
            "Write it as: https://HOST:8443",
        )


def _wrong(field: str, message: str, remedy: str) -> SettingsError:
    return SettingsError(message, remedy=remedy, decision=Decision.RECONFIGURE, field=field)


def _shown(value: str) -> str:
    return repr(value[:60])
