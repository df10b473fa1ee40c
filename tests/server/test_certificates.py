"""The certificates of the stand-in."""

import stat
import sys
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.x509.verification import PolicyBuilder, Store

from surtitle.core.errors import OutputError
from surtitle.server.certificates import Certificate, issue, write_private

NOW = datetime(2026, 5, 17, 12, tzinfo=UTC)


def verify(certificate: Certificate, ca: bytes, host: str, at: datetime = NOW) -> None:
    try:
        subject: x509.DNSName | x509.IPAddress = x509.IPAddress(ip_address(host))
    except ValueError:
        subject = x509.DNSName(host)
    store = Store(x509.load_pem_x509_certificates(ca))
    verifier = PolicyBuilder().store(store).time(at).build_server_verifier(subject)
    verifier.verify(x509.load_pem_x509_certificate(certificate.leaf), [])


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "::1", "box.home", "192.0.2.7"])
def test_it_is_good_for_this_computer_and_what_is_named(host: str) -> None:
    certificate = issue(["box.home", "192.0.2.7", "localhost"], now=NOW)
    verify(certificate, certificate.ca, host)


@pytest.mark.parametrize(
    ("host", "days"), [("example.org", 0), ("localhost", 31), ("localhost", -2)]
)
def test_it_is_good_for_nobody_else_and_not_for_ever(host: str, days: int) -> None:
    certificate = issue(now=NOW)
    with pytest.raises(x509.verification.VerificationError):
        verify(certificate, certificate.ca, host, NOW + timedelta(days=days))


def test_each_authority_is_another() -> None:
    with pytest.raises(x509.verification.VerificationError):
        verify(issue(now=NOW), issue(now=NOW).ca, "localhost")


def test_the_key_is_not_in_the_repr() -> None:
    assert "PRIVATE" not in repr(issue(now=NOW))


def test_a_file_is_its_owners_only(tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    file.write_bytes(b"older and longer")
    file.chmod(0o644)
    write_private(file, b"new")
    assert file.read_bytes() == b"new"
    if sys.platform != "win32":
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["ca.pem"]


@pytest.mark.parametrize("name", ["missing/ca.pem", "folder", "a\0b"])
def test_a_file_that_cannot_be_written_is_a_sentence(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(OutputError, match="cannot be written") as caught:
        write_private(tmp_path / name, b"new")
    assert caught.value.exit_code == 2
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]
