"""`kwire conformance broker`: test a broker."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kwire.cli.client_configs import CLUSTER, client_configs
from kwire.cli.conformance.options import Only, Skip, Strict
from kwire.cli.conformance.output import finish, make_folder, shown_progress
from kwire.cli.options import ClientConfigFile, ClientConfigs, FormatOption
from kwire.cli.rows import Format
from kwire.errors import OptionError

__all__ = ["broker"]


def broker(
    address: Annotated[str, typer.Argument(metavar="BROKER", help="Cluster to test: kafka://HOST:PORT[,HOST:PORT].")],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="DIR", help="Folder for report.json, report.xml and report.html."),
    ] = None,
    release: Annotated[
        str, typer.Option("--release", metavar="RELEASE", help="Kafka release to compare with: 2.8, 3.9 or 4.4.")
    ] = "4.4",
    only: Only = None,
    skip: Skip = None,
    strict: Strict = False,
    timeout: Annotated[float, typer.Option("--timeout", metavar="SECONDS", help="Deadline of one response.")] = 10.0,
    with_users: Annotated[
        bool, typer.Option("--with-users", help="Create and delete SCRAM users although the cluster has others.")
    ] = False,
    config: ClientConfigs = None,
    config_file: ClientConfigFile = None,
    format: FormatOption = Format.TABLE,
) -> int:
    """Test a broker against what real Kafka of a release does.

    Each check talks to the broker over sockets of its own. Topics and groups begin with kwire-conformance and are
    deleted at the end; nothing else is changed. Exit code 1 if a check failed.
    """
    if not address.lower().startswith(CLUSTER):
        raise OptionError(f"{address}: expected {CLUSTER}HOST:PORT")
    if not timeout > 0:
        raise OptionError(f"--timeout {timeout}: expected a number above 0")
    from kwire.client.address import ClusterAddress
    from kwire.client.settings import ClientSettings
    from kwire.conformance.broker import Session, all_checks, check_access, read_baseline, run_checks
    from kwire.conformance.check import select

    checks = select(all_checks(), only or (), skip or ())
    baseline = read_baseline(release)
    cluster = ClusterAddress.parse(address)
    if cluster.name is not None:
        raise OptionError(f"{address}: a topic cannot be tested, only a cluster")
    configs = client_configs(address, config, config_file)
    settings = ClientSettings.parse({**configs, "bootstrap.servers": cluster.bootstrap_servers})
    if output is not None:
        make_folder(output)
    session = Session(cluster.servers, settings, exchange_s=timeout, with_users=with_users)
    check_access(session)
    with shown_progress(len(checks)) as shown:
        report = run_checks(session, checks, baseline, progress=shown)
    return finish(report, output, format, strict=strict)
