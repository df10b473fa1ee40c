"""Credentials from files, programs and the environment, by way of the real botocore."""

import asyncio
import hashlib
import json
import logging
import os
import sys
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from botocore.session import Session

from surtitle.core.errors import Decision, EngineError
from surtitle.engines.aws_credentials import AwsCredentials, Credentials, configured_region

KEY, SECRET, TOKEN = "AKIDOFATEST", "secret-of-a-test", "token-of-a-test"
NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


class Files:
    """The two files of the AWS command line, in a home of their own."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.folder = home / ".aws"
        self.folder.mkdir()

    def config(self, text: str) -> None:
        (self.folder / "config").write_text(text)

    def credentials(self, text: str) -> None:
        (self.folder / "credentials").write_text(text)


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Files:
    """Keep away what this computer is configured with."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / ".aws" / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / ".aws" / "credentials"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setattr(
        "botocore.credentials.SSOProvider._SSO_TOKEN_CACHE_DIR", str(tmp_path / "sso-cache")
    )
    return Files(tmp_path)


def resolve(profile: str = "", **options: float) -> Credentials:
    return asyncio.run(AwsCredentials(profile, **options).resolve())  # type: ignore[arg-type] # only numbers are given


def refusal(profile: str = "") -> EngineError:
    with pytest.raises(EngineError) as caught:
        resolve(profile)
    assert SECRET not in str(caught.value)
    assert "\n" not in str(caught.value)
    return caught.value


def program(answer: object, *, status: int = 0) -> str:
    """Write a line for a program that answers so."""
    said = json.dumps(json.dumps(answer) if not isinstance(answer, str) else answer)
    code = f"import sys; print({said}); sys.exit({status})"
    return f'"{sys.executable}" -c {json.dumps(code)}'


def answer(**more: object) -> dict[str, object]:
    return {"Version": 1, "AccessKeyId": KEY, "SecretAccessKey": SECRET} | more


@pytest.mark.usefixtures("files")
def test_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("AWS_SESSION_TOKEN", TOKEN)
    before = dict(os.environ)
    found = resolve()
    assert (found.access_key, found.secret_key, found.token) == (KEY, SECRET, TOKEN)
    assert found.expires is None
    assert "AWS_ACCESS_KEY_ID" in found.renewal
    assert dict(os.environ) == before


def test_from_a_profile(files: Files) -> None:
    files.credentials(
        f"[work]\naws_access_key_id={KEY}\naws_secret_access_key={SECRET}\n"
        "[default]\naws_access_key_id=other\naws_secret_access_key=other\n"
    )
    found = resolve("work")
    assert (found.access_key, found.secret_key, found.token) == (KEY, SECRET, "")
    assert found.renewal == "Put fresh ones into the profile: aws configure --profile work"
    assert resolve().access_key == "other"


def test_the_profile_of_the_environment(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    files.credentials(f"[work]\naws_access_key_id={KEY}\naws_secret_access_key={SECRET}\n")
    monkeypatch.setenv("AWS_PROFILE", "work")
    found = resolve()
    assert found.access_key == KEY
    assert "--profile work" in found.renewal


def test_a_profile_asked_for_beats_the_environment(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    files.credentials(f"[work]\naws_access_key_id={KEY}\naws_secret_access_key={SECRET}\n")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "other")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "other")
    assert resolve("work").access_key == KEY


def test_from_a_program(files: Files) -> None:
    expires = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=1)
    line = program(answer(SessionToken=TOKEN, Expiration=expires.isoformat()))
    files.config(f"[profile tool]\ncredential_process = {line}\n")
    found = resolve("tool")
    assert (found.access_key, found.secret_key, found.token) == (KEY, SECRET, TOKEN)
    assert found.expires == expires


@pytest.mark.parametrize(
    "line",
    [
        program("words that nobody may read", status=1),
        program("no JSON"),
        program({"Version": 2}),
        program({"Version": 1}),
        "a-program-that-is-not-there",
    ],
    ids=["fails", "no JSON", "version", "incomplete", "missing"],
)
def test_a_program_that_fails(files: Files, line: str) -> None:
    files.config(f"[profile tool]\ncredential_process = {line}\n")
    error = refusal("tool")
    assert error.decision is Decision.RECONFIGURE
    assert "credential_process" in error.message
    assert "aws sts get-caller-identity --profile tool" in error.remedy
    assert "nobody may read" not in str(error)


@pytest.mark.usefixtures("files")
def test_nothing_anywhere() -> None:
    error = refusal()
    assert (error.decision, error.field) == (Decision.RECONFIGURE, "--profile")
    assert "aws configure sso" in error.remedy
    assert "aws login" in error.remedy


def test_a_profile_without_credentials(files: Files) -> None:
    files.config("[profile work]\nregion=eu-west-1\n")
    error = refusal("work")
    assert "There are no AWS credentials for the AWS profile 'work'." in error.message
    assert "aws login --profile work" in error.remedy


def test_a_part_of_them(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY)
    assert "Only a part" in refusal().message
    files.credentials(f"[work]\naws_access_key_id={KEY}\n")
    assert "secret access key" in refusal("work").remedy


def test_a_profile_that_is_not_there_is_told_with_those_near_it(files: Files) -> None:
    files.config("[profile work]\n[profile home]\n")
    error = refusal("wrok")
    assert error.message == "There is no AWS profile 'wrok'."
    assert error.remedy == "Did you mean work?"
    assert (error.decision, error.field) == (Decision.RECONFIGURE, "--profile")
    assert refusal("zzz").remedy == "There are: home, work."


def test_many_profiles_are_not_all_listed(files: Files) -> None:
    files.config("".join(f"[profile name{number}]\n" for number in range(20)))
    assert refusal("zzz").remedy.endswith("and 12 more.")


@pytest.mark.usefixtures("files")
def test_no_profiles_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "aws configure sso" in refusal("work").remedy
    monkeypatch.setenv("AWS_PROFILE", "work")
    assert refusal().field == "AWS_PROFILE"


@pytest.mark.parametrize("token", [None, {"accessToken": "x", "expiresAt": "2020-01-01T00:00:00Z"}])
def test_single_sign_on_that_is_over(files: Files, token: object) -> None:
    files.config(
        "[profile work]\nsso_session=corp\nsso_account_id=1\nsso_role_name=r\n"
        "[sso-session corp]\nsso_region=eu-west-1\nsso_start_url=https://corp.example/start\n"
    )
    if token:
        cache = files.home / "sso-cache"
        cache.mkdir()
        for name in ("corp", "https://corp.example/start"):
            digest = hashlib.sha1(name.encode(), usedforsecurity=False).hexdigest()
            (cache / f"{digest}.json").write_text(json.dumps(token))
    error = refusal("work")
    assert error.decision is Decision.RECONFIGURE
    assert error.remedy == "Run: aws sso login --profile work"


def test_single_sign_on_that_is_half_configured(files: Files) -> None:
    files.config("[profile work]\nsso_account_id=1\nsso_role_name=r\n")
    error = refusal("work")
    assert "incomplete" in error.message
    assert "~/.aws/config" in error.remedy


def test_a_login_that_is_over(files: Files) -> None:
    files.config("[profile work]\nlogin_session=arn:aws:iam::1:user/me\nregion=eu-west-1\n")
    assert refusal("work").remedy == "Run: aws login --profile work"


def test_nobody_is_asked_for_a_code_on_a_terminal(files: Files) -> None:
    files.credentials(f"[base]\naws_access_key_id={KEY}\naws_secret_access_key={SECRET}\n")
    files.config(
        "[profile work]\nrole_arn=arn:aws:iam::1:role/r\nsource_profile=base\n"
        "mfa_serial=arn:aws:iam::1:mfa/me\nregion=eu-west-1\n"
    )
    error = refusal("work")
    assert "MFA" in error.message
    assert error.decision is Decision.RECONFIGURE


def test_a_role_service_that_cannot_be_reached(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    files.credentials(f"[base]\naws_access_key_id={KEY}\naws_secret_access_key={SECRET}\n")
    files.config(
        "[profile work]\nrole_arn=arn:aws:iam::1:role/r\nsource_profile=base\nregion=eu-west-1\n"
    )
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    error = refusal("work")
    assert error.decision is Decision.RETRY
    assert "network" in error.remedy


def test_a_file_that_cannot_be_read(files: Files) -> None:
    files.config("no section = here\n")
    error = refusal()
    assert "configuration file cannot be read" in error.message


def test_a_profile_name_with_a_space_can_be_pasted(files: Files) -> None:
    files.credentials(f"[my work]\naws_access_key_id={KEY}\naws_secret_access_key={SECRET}\n")
    assert resolve("my work").renewal.endswith('--profile "my work"')


def lasting(seconds: float) -> Callable[[str], Credentials]:
    def load(_profile: str) -> Credentials:
        return Credentials(
            access_key=KEY,
            secret_key=SECRET,
            expires=NOW + timedelta(seconds=seconds),
            renewal="Run: aws sso login",
        )

    return load


@pytest.mark.parametrize("seconds", [300.0, 3600.0])
def test_what_lasts_long_enough(seconds: float) -> None:
    found = asyncio.run(AwsCredentials(load=lasting(seconds), now=lambda: NOW).resolve())
    assert found.access_key == KEY


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(299.0, "expire in 299 s"), (0.0, "have expired"), (-9.0, "have expired")],
)
def test_what_ends_too_soon_is_refused_with_the_command_that_helps(
    seconds: float, words: str
) -> None:
    with pytest.raises(EngineError) as caught:
        asyncio.run(AwsCredentials(load=lasting(seconds), now=lambda: NOW).resolve())
    assert words in caught.value.message
    assert caught.value.remedy == "Run: aws sso login"
    assert caught.value.decision is Decision.RECONFIGURE


def test_a_program_of_the_user_that_hangs_does_not_hang_us() -> None:
    release = threading.Event()

    def hanging(_profile: str) -> Credentials:
        assert release.wait(30)
        raise AssertionError

    async def main() -> None:
        with pytest.raises(EngineError) as caught:
            await AwsCredentials("work", load=hanging, within=0.05).resolve()
        assert caught.value.decision is Decision.RETRY
        assert "--profile work" in caught.value.remedy

    asyncio.run(main())
    release.set()  # it ends with nobody waiting: the loop is closed


def test_credentials_do_not_show_themselves() -> None:
    shown = repr(Credentials(access_key=KEY, secret_key=SECRET, token=TOKEN))
    for hidden in (KEY, SECRET, TOKEN):
        assert hidden not in shown


def test_botocore_logs_nothing_of_what_it_is_answered(
    files: Files, caplog: pytest.LogCaptureFixture
) -> None:
    line = program(answer(SessionToken=TOKEN))
    files.config(f"[profile tool]\ncredential_process = {line}\n")
    with caplog.at_level(logging.DEBUG):
        resolve("tool")
        refusal("tool2")
    assert not [record for record in caplog.records if record.name.startswith("botocore")]


def test_the_region(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    assert configured_region() == ""
    files.config("[default]\nregion=eu-west-1\n[profile work]\nregion=us-east-1\n")
    assert configured_region() == "eu-west-1"
    assert configured_region("work") == "us-east-1"
    with pytest.raises(EngineError, match="Did you mean work"):
        configured_region("wrok")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "ap-south-1")
    assert configured_region() == "ap-south-1"


def test_what_is_set_aside_of_botocore_is_there() -> None:
    chain = Session().get_component("credential_provider")
    assert callable(chain.get_provider("assume-role")._prompter)
