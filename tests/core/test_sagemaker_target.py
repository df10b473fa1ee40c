"""What can be meant as a SageMaker endpoint, and where it is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surtitle.core.errors import Decision, SettingsError
from surtitle.core.sagemaker_target import SageMakerTarget


def target(**values: str) -> SageMakerTarget:
    return SageMakerTarget(**({"endpoint": "voxtral", "region": "eu-west-1"} | values))


def made(**values: str) -> SageMakerTarget | SettingsError:
    try:
        return target(**values)
    except SettingsError as error:
        return error


@pytest.mark.parametrize(
    ("region", "url", "partition"),
    [
        ("us-east-1", "https://runtime.sagemaker.us-east-1.amazonaws.com:8443", "aws"),
        ("ap-southeast-7", "https://runtime.sagemaker.ap-southeast-7.amazonaws.com:8443", "aws"),
        ("cn-north-1", "https://runtime.sagemaker.cn-north-1.amazonaws.com.cn:8443", "aws-cn"),
        (
            "us-gov-west-1",
            "https://runtime.sagemaker.us-gov-west-1.amazonaws.com:8443",
            "aws-us-gov",
        ),
        ("us-iso-east-1", "https://runtime.sagemaker.us-iso-east-1.c2s.ic.gov:8443", "aws-iso"),
        (
            "us-isob-east-1",
            "https://runtime.sagemaker.us-isob-east-1.sc2s.sgov.gov:8443",
            "aws-iso-b",
        ),
        (
            "us-isof-south-1",
            "https://runtime.sagemaker.us-isof-south-1.csp.hci.ic.gov:8443",
            "aws-iso-f",
        ),
        (
            "eu-isoe-west-1",
            "https://runtime.sagemaker.eu-isoe-west-1.cloud.adc-e.uk:8443",
            "aws-iso-e",
        ),
        (
            "eusc-de-east-1",
            "https://runtime.sagemaker.eusc-de-east-1.amazonaws.eu:8443",
            "aws-eusc",
        ),
    ],
)
def test_every_partition_has_its_address(region: str, url: str, partition: str) -> None:
    found = target(region=region)
    assert found.url == url
    assert found.arn == f"arn:{partition}:sagemaker:{region}:*:endpoint/voxtral"
    assert found.place == f"to voxtral on SageMaker in {region}"


@pytest.mark.parametrize(
    ("given_url", "url", "host"),
    [
        ("https://localhost:8443", "https://localhost:8443", "localhost"),
        ("https://localhost:8443/", "https://localhost:8443", "localhost"),
        ("HTTPS://Stand-In.example", "https://stand-in.example:443", "stand-in.example"),
        ("https://127.0.0.1:1", "https://127.0.0.1:1", "127.0.0.1"),
        ("https://[::1]:8443", "https://[::1]:8443", "::1"),
    ],
)
def test_an_address_given_wins(given_url: str, url: str, host: str) -> None:
    found = target(endpoint_url=given_url)
    assert (found.url, found.host) == (url, host)
    assert found.place == f"to voxtral at {host}"


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("endpoint", "", "list-endpoints"),
        ("endpoint", "-voxtral", "cannot be the name"),
        ("endpoint", "voxtral-", "cannot be the name"),
        ("endpoint", "vox_tral", "cannot be the name"),
        ("endpoint", "voxtral\n", "cannot be the name"),
        ("endpoint", "vöxtral", "cannot be the name"),
        ("endpoint", "arn:aws:sagemaker:us-east-1:1:endpoint/voxtral", "not an ARN"),
        ("endpoint", "a" * 64, "At most 63"),
        ("region", "", "No AWS region"),
        ("region", "Frankfurt", "like us-east-1"),
        ("region", "us-east", "like us-east-1"),
        ("region", "us-east-1a", "like us-east-1"),
        ("region", "us-east-1.evil.example/", "like us-east-1"),
        ("target_variant", "a b", "production variant"),
        ("target_variant", "a" * 64, "At most 63"),
        ("invocation_path", "/v1/realtime", "slash out"),
        ("invocation_path", "v1//realtime", "single slashes"),
        ("invocation_path", "v1/", "single slashes"),
        ("invocation_path", "v1/real time", "cannot be an invocation path"),
        ("invocation_path", "v1?x=1", "cannot be an invocation path"),
        ("invocation_path", "a" * 101, "At most 100"),
        ("query_string", "?a=b", "question mark"),
        ("query_string", "a", "name=value"),
        ("query_string", "a=b&", "name=value"),
        ("query_string", "=b", "name=value"),
        ("query_string", "a=b c", "%XX"),
        ("query_string", "a=%2", "%XX"),
        ("query_string", "a=" + "b" * 2047, "At most 2048"),
        ("endpoint_url", "http://localhost:8443", "begin with https"),
        ("endpoint_url", "wss://localhost:8443", "begin with https"),
        ("endpoint_url", "localhost:8443", "begin with https"),
        ("endpoint_url", "https://", "just a host"),
        ("endpoint_url", "https://a b:8443", "just a host"),
        ("endpoint_url", "https://host:8443\n", "just a host"),
        ("endpoint_url", "https://host-:8443", "just a host"),
        ("endpoint_url", "https://host:", "just a host"),
        ("endpoint_url", "https://höst", "just a host"),
        ("endpoint_url", "https://host:0", "just a host"),
        ("endpoint_url", "https://host:70000", "just a host"),
        ("endpoint_url", "https://[::1:8443", "just a host"),
        ("endpoint_url", "https://me:word@host:8443", "just a host"),
        ("endpoint_url", "https://host:8443/endpoints", "just a host"),
        ("endpoint_url", "https://host:8443?x=1", "just a host"),
        ("profile", "two\nlines", "one line"),
        ("ca_bundle", "two\nlines", "one line"),
    ],
)
def test_what_cannot_be_names_the_option_and_what_to_do(
    option: str, value: str, words: str
) -> None:
    with pytest.raises(SettingsError) as caught:
        target(**{option: value})
    assert caught.value.field == f"--{option.replace('_', '-')}"
    assert caught.value.decision is Decision.RECONFIGURE
    assert caught.value.exit_code == 2
    assert caught.value.remedy
    assert words in str(caught.value)


@pytest.mark.parametrize("option", ["query_string", "endpoint_url"])
def test_what_may_be_secret_is_not_repeated(option: str) -> None:
    with pytest.raises(SettingsError) as caught:
        target(**{option: "https://me:hush-hush@host key=hush-hush !"})
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("endpoint", "a"),
        ("endpoint", "Voxtral--Mini-1"),
        ("endpoint", "a" * 63),
        ("target_variant", "AllTraffic"),
        ("invocation_path", "v1/realtime"),
        ("invocation_path", "a.b-c_d"),
        ("query_string", "a=b"),
        ("query_string", "a=&b=%2Fx"),
        ("profile", "my profile"),
        ("ca_bundle", "folder with spaces/ca.pem"),
    ],
)
def test_what_can_be(option: str, value: str) -> None:
    assert getattr(target(**{option: value}), option) == value


@given(st.text(max_size=80), st.sampled_from(["endpoint", "region", "invocation_path"]))
def test_anything_else_is_a_sentence(value: str, option: str) -> None:
    found = made(**{option: value})
    if isinstance(found, SettingsError):
        assert "\n" not in str(found)
    else:
        assert found.url.endswith(":8443")
        assert found.url.isprintable()


@given(st.text(max_size=40))
def test_any_address_is_refused_or_can_be_called(rest: str) -> None:
    found = made(endpoint_url=f"https://{rest}")
    if isinstance(found, SettingsError):
        assert "\n" not in str(found)
    else:
        assert target(endpoint_url=found.url).url == found.url
