"""Real servers for tests of sources, each on loopback, in a folder of its own, ended with the tests.

    with postgres() as server:
        server.sql("create table ...")

PostgreSQL and MariaDB are Debian's: `apt-get install postgresql mariadb-server odbc-mariadb unixodbc`. S3 is
moto's server, gs:// and abfs:// are emulators', and roapi speaks Flight SQL. Where one is not there, the test
is skipped and says what it needs.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import pytest

PASSWORD = "hush-7/Zebra@42"  # noqa: S105  with letters that an address must have quoted
SECONDS = 60.0
ADMIN = {**os.environ, "PGPASSWORD": PASSWORD}


@dataclass(frozen=True)
class Server:
    """A database server with a user "bank" whose password is `PASSWORD`."""

    kind: str
    port: int
    process: subprocess.Popen[bytes]
    client: tuple[str, ...]

    def sql(self, text: str) -> str:
        """Run statements as the server's administrator."""
        done = subprocess.run(self.client, input=text, capture_output=True, text=True, env=ADMIN)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def address(self, part: str, *, user: str = "bank:{DB_PASSWORD}") -> str:
        """What a job says to read a table or query."""
        return f"{self.kind}://{user}@127.0.0.1:{self.port}/risk#{part}"


@contextmanager
def postgres() -> Iterator[Server]:
    """PostgreSQL, with passwords."""
    programs = _programs("initdb", "postgres", "psql")
    with _folder("postgres") as folder:
        data, owner = folder / "data", _owner("postgres")
        secret = folder / "password"
        secret.write_text(PASSWORD, encoding="utf-8")
        secret.chmod(0o644)
        _run([programs[0], "-D", data, "-U", "admin", "-A", "scram-sha-256", "--pwfile", secret, "-N"], owner)
        port = _free_port()
        options = [f"-cunix_socket_directories={folder}", "-clisten_addresses=127.0.0.1", "-cfsync=off"]
        command = [programs[1], "-D", data, "-p", port, *options]
        client = [programs[2], "-q", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1", "-p", port, "-U", "admin"]
        with _running(command, folder, owner) as process:
            _until_it_answers([*client, "-d", "postgres", "-c", "create database risk"], process, folder)
            server = Server("postgresql", port, process, tuple(map(str, [*client, "-d", "risk"])))
            server.sql(f"create role bank login password '{PASSWORD}'")
            server.sql("grant all on schema public to bank")
            yield server


@contextmanager
def mariadb() -> Iterator[Server]:
    """MariaDB, and its driver for ODBC."""
    programs = _programs("mariadb-install-db", "mariadbd", "mariadb", "odbcinst")
    if "MariaDB" not in subprocess.run([programs[3], "-q", "-d"], capture_output=True, text=True).stdout:
        pytest.skip("no ODBC driver for MariaDB: apt-get install odbc-mariadb")
    with _folder("mysql") as folder:
        data, owner = folder / "data", _owner("mysql")
        install = [programs[0], "--no-defaults", f"--datadir={data}", "--skip-test-db"]
        _run([*install, "--auth-root-authentication-method=normal"], owner)
        port, local = _free_port(), folder / "socket"
        places = [f"--datadir={data}", f"--socket={local}", f"--pid-file={folder / 'pid'}"]
        command = [
            programs[1],
            "--no-defaults",
            *places,
            f"--port={port}",
            "--bind-address=127.0.0.1",
            "--skip-name-resolve",
        ]
        client = [programs[2], "--no-defaults", f"--socket={local}", "-uroot"]
        with _running(command, folder, owner) as process:
            _until_it_answers([*client, "-e", "create database risk"], process, folder)
            server = Server("mariadb", port, process, tuple(map(str, [*client, "risk"])))
            server.sql(f"create user bank@'127.0.0.1' identified by '{PASSWORD}'")
            server.sql("grant select on risk.* to bank@'127.0.0.1'")
            yield server


@contextmanager
def s3() -> Iterator[str]:
    """S3, with a bucket "shop"; gives what an address ends in to find it."""
    moto = pytest.importorskip("moto.server", reason="no S3 to try: pip install 'moto[server]'")
    from pyarrow import fs

    server = moto.ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    keys = {"AWS_ACCESS_KEY_ID": "someone", "AWS_SECRET_ACCESS_KEY": PASSWORD}
    try:
        with pytest.MonkeyPatch.context() as patch:
            for name, value in {**keys, "AWS_EC2_METADATA_DISABLED": "true"}.items():
                patch.setenv(name, value)
            end = f"scheme=http&endpoint_override={host}%3A{port}&region=us-east-1"
            store, _ = fs.FileSystem.from_uri(f"s3://shop?{end}&allow_bucket_creation=true")
            store.create_dir("shop")
            yield end
    finally:
        server.stop()


@contextmanager
def gs() -> Iterator[str]:
    """A store that speaks as Google's, with a bucket "shop"; gives what an address ends in to find it."""
    pytest.importorskip("gcp_storage_emulator", reason="no gs:// to try: pip install gcp-storage-emulator")
    port = _free_port()
    # in a process of its own: pyarrow holds the interpreter's lock while it waits for an answer
    command = [sys.executable, "-m", "gcp_storage_emulator", "start", "--host=127.0.0.1", f"--port={port}"]
    with tempfile.TemporaryDirectory(prefix="colonnade-") as folder:
        settings = ["--in-memory", "--default-bucket=shop"]
        with _running([*command, *settings], Path(folder), None) as process:
            _until_it_listens(port, process, Path(folder))
            yield f"scheme=http&endpoint_override=127.0.0.1%3A{port}&retry_limit_seconds=5"


@contextmanager
def abfs() -> Iterator[str]:
    """A store that speaks as Azure's, with a container "shop" and an account "bank" with `AZURE_KEY`."""
    program = shutil.which("azurite-blob")
    if program is None:
        pytest.skip("no abfs:// to try: npm install --global azurite")
    from pyarrow import fs

    key, port = base64.b64encode(PASSWORD.encode()).decode(), _free_port()
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory(prefix="colonnade-") as folder:
        patch.setenv("AZURE_KEY", key)
        patch.setenv("AZURITE_ACCOUNTS", f"bank:{key}")
        command = [program, "--blobPort", port, "--inMemoryPersistence", "--skipApiVersionCheck"]
        places = dict.fromkeys(("blob_storage_authority", "dfs_storage_authority"), f"127.0.0.1:{port}")
        schemes = dict.fromkeys(("blob_storage_scheme", "dfs_storage_scheme"), "http")
        with _running(command, Path(folder), None) as process:
            _until_it_listens(port, process, Path(folder))
            fs.AzureFileSystem("bank", account_key=key, **places, **schemes).create_dir("shop")
            yield "enable_tls=false&" + "&".join(f"{name}={quote(at)}" for name, at in places.items())


@contextmanager
def flight(tables: dict[str, Path], token: str) -> Iterator[str]:
    """A Flight SQL server with Parquet files as tables and a user "bank", without TLS; gives its address."""
    program = shutil.which("roapi", path=os.pathsep.join([str(Path(sys.executable).parent), os.defpath]))
    if program is None:
        pytest.skip("no Flight SQL server to try: pip install roapi")
    ports = {name: f"127.0.0.1:{_free_port()}" for name in ("flight_sql", "http", "postgres")}
    user = {"auth_basic": {"username": "bank", "password": PASSWORD}, "auth_token": token}
    listed = [{"name": name, "uri": str(path)} for name, path in tables.items()]
    with tempfile.TemporaryDirectory(prefix="colonnade-") as name:
        folder = Path(name)
        settings = json.dumps({"addr": ports, "tables": listed, "flight_sql_config": user})
        (folder / "roapi.yaml").write_text(settings, "utf-8")
        with _running([program, "--config", folder / "roapi.yaml"], folder, None) as process:
            _until_it_listens(int(ports["flight_sql"].rpartition(":")[2]), process, folder)
            yield ports["flight_sql"]


def _programs(*names: str) -> list[str]:
    """Where programs are; the test is skipped where one is not."""
    places = [*map(str, sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)), "/usr/sbin"]
    path = os.pathsep.join([os.environ.get("PATH", ""), *places])
    found = {name: shutil.which(name, path=path) for name in names}
    missing = [name for name, place in found.items() if place is None]
    if missing:
        pytest.skip(f"{', '.join(missing)}: not on this machine; apt-get install postgresql mariadb-server")
    return [str(place) for place in found.values()]


def _owner(name: str) -> str | None:
    """Who runs a server: these refuse to run as root."""
    return name if os.getuid() == 0 else None


@contextmanager
def _folder(owner: str) -> Iterator[Path]:
    """A folder for a server's data; its path is short enough for a socket in it."""
    folder = Path(tempfile.mkdtemp(prefix="colonnade-", dir="/tmp"))
    try:
        if os.getuid() == 0:
            shutil.chown(folder, owner)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _run(command: Sequence[object], user: str | None) -> None:
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, user=user, cwd="/")
    assert done.returncode == 0, done.stderr + done.stdout


@contextmanager
def _running(command: Sequence[object], folder: Path, user: str | None) -> Iterator[subprocess.Popen[bytes]]:
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            list(map(str, command)), stdout=log, stderr=log, user=user, cwd=folder, start_new_session=True
        )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM if "mariadbd" in str(command[0]) else signal.SIGINT)
        try:
            process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _until_it_answers(command: Sequence[object], process: subprocess.Popen[bytes], folder: Path) -> None:
    """Run a command until it succeeds."""
    deadline = time.monotonic() + SECONDS
    while subprocess.run(list(map(str, command)), capture_output=True, env=ADMIN).returncode:
        told = (folder / "log").read_text("utf-8", errors="replace")
        assert process.poll() is None, told
        assert time.monotonic() < deadline, told
        time.sleep(0.1)


def _until_it_listens(port: int, process: subprocess.Popen[bytes], folder: Path) -> None:
    """Try to connect until that succeeds."""
    deadline = time.monotonic() + SECONDS
    while True:
        with socket.socket() as tried:
            if not tried.connect_ex(("127.0.0.1", port)):
                return
        told = (folder / "log").read_text("utf-8", errors="replace")
        assert process.poll() is None, told
        assert time.monotonic() < deadline, told
        time.sleep(0.1)


def _free_port() -> int:
    with socket.socket() as tried:
        tried.bind(("127.0.0.1", 0))
        return int(tried.getsockname()[1])
