"""A certificate authority for one run, and the certificate it signs for this computer."""

import errno
import ipaddress
import os
import ssl
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from surtitle.core.errors import OutputError

__all__ = ["LOCAL_HOSTS", "Certificate", "issue", "server_context", "write_private"]

LOCAL_HOSTS = ("localhost", "127.0.0.1", "::1")
"""The names of this computer that every certificate is for."""
_VALID = timedelta(days=30)
_MARGIN = timedelta(days=1)
"""Against clocks that differ."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """A server's certificate with its key, and that of the authority; all PEM.

    The authority's key is thrown away: nothing else can be signed in its name.
    """

    ca: bytes
    leaf: bytes
    key: bytes = field(repr=False)


def issue(hosts: Iterable[str] = (), *, now: datetime) -> Certificate:
    """Make an authority and a certificate for this computer's local names and `hosts`.

    Args:
        hosts: More host names or addresses.
        now: With a time zone; it is good for 30 days from then.
    """
    ca_key = ec.generate_private_key(ec.SECP256R1())
    ca_name = _name("Surtitle local stand-in CA")
    ca = (
        _builder(ca_name, ca_name, ca_key.public_key(), now)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .add_extension(
            x509.SubjectKeyIdentifier.from_public_key(ca_key.public_key()), critical=False
        )
        .sign(ca_key, hashes.SHA256())
    )
    key = ec.generate_private_key(ec.SECP256R1())
    names = [_host(host) for host in dict.fromkeys((*LOCAL_HOSTS, *hosts))]
    leaf = (
        _builder(_name("localhost"), ca_name, key.public_key(), now)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key()),
            critical=False,
        )
        .sign(ca_key, hashes.SHA256())
    )
    return Certificate(
        ca=ca.public_bytes(serialization.Encoding.PEM),
        leaf=leaf.public_bytes(serialization.Encoding.PEM),
        key=key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ),
    )


def server_context(certificate: Certificate, protocols: Sequence[str]) -> ssl.SSLContext:
    """TLS 1.2 or newer with this certificate, offering these application protocols.

    Raises:
        OutputError: The key has to pass through an owner-only file, which cannot be written.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(list(protocols))
    try:
        with tempfile.TemporaryDirectory(prefix="surtitle-") as folder:  # its owner's only
            file = Path(folder) / "server.pem"
            write_private(file, certificate.key + certificate.leaf)
            context.load_cert_chain(file)
    except OSError as error:  # ssl.SSLError too
        raise OutputError(
            "The stand-in's certificate cannot be put into a temporary file.",
            remedy="Make room in the folder for temporary files.",
        ) from error
    return context


def write_private(path: Path, content: bytes) -> None:
    """Write an owner-only file, whole or not at all.

    Raises:
        OutputError: There is no such folder, it cannot be written to, or what is there is
            no file: a device must not be replaced by one.
    """
    try:
        target = _replaceable(path)
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        try:
            with open(handle, "wb") as file:  # noqa: PTH123 - of a descriptor
                file.write(content)
            Path(name).replace(target)
        except BaseException:
            with suppress(OSError):
                Path(name).unlink()
            raise
    except (OSError, ValueError) as error:
        reason = (error.strerror or "") if isinstance(error, OSError) else "no such name"
        raise OutputError(
            f"{os.fspath(path)!r} cannot be written: {reason.lower() or type(error).__name__}.",
            remedy="Choose another file.",
            usage=True,
        ) from error


def _replaceable(path: Path) -> Path:
    """Where the file really is. Raises OSError if what is there is none."""
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        raise OSError(errno.EEXIST, "It is no file")
    return target


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, now: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _MARGIN)
        .not_valid_after(now + _VALID)
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
