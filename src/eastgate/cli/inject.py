"""`inject`: manifests of pods and of their controllers, with the sidecar in them."""

from __future__ import annotations

import sys

import click

from eastgate.basics.diagnostics.printable import printable
from eastgate.cli.options import exclude_option, follow_option
from eastgate.cli.output import UNDECIDED, emit, fail, output_option, print_lines


@click.command(epilog="Exits with 0; 2 if a manifest cannot be read, or a pod cannot have a sidecar.")
@click.option("-f", "--filename", "files", multiple=True, required=True, help="File, folder, or - for standard input.")
@follow_option
@exclude_option
@click.option("--proxy-image", metavar="IMAGE", help="Image with Envoy and iptables.")
@click.option("--control-plane", metavar="HOST:PORT", help="Address of the control plane for proxies.")
@output_option("yaml", "json", about="Format of the manifests.")
def inject(
    files: tuple[str, ...],
    follow: bool,
    exclude: tuple[str, ...],
    proxy_image: str | None,
    control_plane: str | None,
    output: str,
) -> None:
    """Print manifests with the sidecar in their pods.

    The sidecar is the one that the webhook of the controller adds in a cluster.
    """
    from dataclasses import replace

    from eastgate.cli.bootstrap import control_plane_of
    from eastgate.controller.injection import InjectionOptions, InjectionRefused, inject_manifest
    from eastgate.convert.run import as_json, as_yaml
    from eastgate.reading.manifests import Bounds, read
    from eastgate.reading.manifests.document import content_of

    options = InjectionOptions()
    options = replace(
        options,
        proxy_image=proxy_image or options.proxy_image,
        control_plane=control_plane_of(control_plane),
    )
    bounds = Bounds.of(files, follow=follow, exclude=exclude)
    reading = read(files, positioned=lambda *_: False, stdin=sys.stdin.buffer, bounds=bounds)
    if reading.reporter.errors:
        fail(reading.reporter)
    manifests, refused = [], False
    for document in reading.documents:
        named = printable(f"{document.kind} {document.name}")
        try:
            manifest, warnings = inject_manifest(dict(content_of(document) or {}), options)  # type: ignore[arg-type]
        except InjectionRefused as error:
            print_lines(f"error: {named}: {printable(str(error))}", err=True)
            refused = True
            continue
        for warning in warnings:
            print_lines(f"warning: {named}: {printable(warning)}", err=True)
        manifests.append(manifest)
    if refused:
        sys.exit(UNDECIDED)
    emit(as_json(manifests) if output == "json" else as_yaml(manifests))
