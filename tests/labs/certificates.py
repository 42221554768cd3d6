"""Certificates for servers of tests: a CA, and what it has signed."""

import subprocess


def openssl(*arguments):
    subprocess.run(["openssl", *map(str, arguments)], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def make_certificates(folder, *addresses):
    """In `folder`: ca.pem; server.pem and server.key for the addresses; client.pem and client.key."""
    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
    openssl("req", "-x509", *key, "-subj", "/CN=ca", "-days", 2, "-keyout", folder / "ca.key",
            "-out", folder / "ca.pem")
    names = ",".join(f"IP:{address}" for address in addresses)
    for name, extension in (("server", f"subjectAltName={names}"), ("client", "extendedKeyUsage=clientAuth")):
        openssl("req", *key, "-subj", f"/CN={name}", "-keyout", folder / f"{name}.key", "-out", folder / f"{name}.csr")
        (folder / "extension").write_text(extension)
        openssl("x509", "-req", "-in", folder / f"{name}.csr", "-CA", folder / "ca.pem", "-CAkey", folder / "ca.key",
                "-CAcreateserial", "-days", 2, "-extfile", folder / "extension", "-out", folder / f"{name}.pem")
