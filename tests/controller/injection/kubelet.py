"""Runs containers of a pod as processes with their command, environment, volumes and user, in a network namespace.

The image is not used: the programs are those of this machine.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from eastgate.local.machine.envoy import find_envoy
from tests.controller.injection.network import NODE, Namespace
from tests.controller.injection.volumes import write_volume

Plain = dict[str, Any]


class PodSandbox:
    """A pod on this machine. `files` are the files of tokens and ConfigMaps, by volume name. `hosts` are the names
    that it can resolve, with their addresses.
    """

    def __init__(
        self,
        pod: Plain,
        namespace: Namespace,
        folder: Path,
        files: dict[str, dict[str, str]],
        hosts: Mapping[str, str] | None = None,
    ) -> None:
        self.pod = pod
        self.namespace = namespace
        self.folder = folder
        self._files = files
        self._hosts = hosts or {"eastgate.eastgate-system.svc": NODE}
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        folder.mkdir(parents=True)
        for sysctl in pod["spec"].get("securityContext", {}).get("sysctls", ()):
            namespace.run("sh", "-c", f"echo {sysctl['value']} >/proc/sys/{sysctl['name'].replace('.', '/')}")
        for volume in pod["spec"]["volumes"]:
            self.write_volume(volume)

    def write_volume(self, volume: Plain) -> None:
        folder = self.folder / volume["name"]
        if "downwardAPI" in volume:
            items = volume["downwardAPI"]["items"]
            write_volume(folder, {item["path"]: self._field(item["fieldRef"]["fieldPath"]) for item in items})
        elif "emptyDir" in volume:
            folder.mkdir()
            folder.chmod(0o777)
        else:
            write_volume(folder, self._files[volume["name"]])

    def _field(self, path: str) -> str:
        if annotation := re.fullmatch(r"metadata\.annotations\['(.+)'\]", path):
            return str(self.pod["metadata"]["annotations"][annotation[1]])
        first, second = path.split(".")
        return str(self.pod[first][second])

    def container(self, name: str) -> Plain:
        spec = self.pod["spec"]
        [found] = [each for each in (*spec.get("initContainers", ()), *spec["containers"]) if each["name"] == name]
        return found  # type: ignore[no-any-return]

    def command(self, name: str) -> list[str]:
        """Return the command that runs a container in the pod."""
        container = self.container(name)
        env = {each["name"]: self._value(each) for each in container.get("env", ())}
        words = [_expanded(word, env) for word in (*container["command"], *container.get("args", ()))]
        words = [str(find_envoy()) if word == "envoy" else word for word in words]
        context = {**self.pod["spec"].get("securityContext", {}), **container["securityContext"]}
        kept = [f"+{each.lower()}" for each in context["capabilities"].get("add", ())]
        user = str(context["runAsUser"])
        return [
            *(
                "nsenter",
                "--net",
                "--target",
                str(self.namespace.pid),
                "--",
                "unshare",
                "--mount",
                "--",
                "/bin/sh",
                "-ec",
            ),
            self._mounting(container) + 'exec "$@"',
            "sh",
            *("setpriv", "--reuid", user, "--regid", str(context["runAsGroup"]), "--clear-groups"),
            *("--no-new-privs", "--inh-caps", ",".join(["-all", *kept]), "--bounding-set", ",".join(["-all", *kept])),
            *("--pdeathsig", "KILL", "env", "-i", f"PATH={os.environ['PATH']}"),
            *(f"{key}={value}" for key, value in env.items()),
            *words,
        ]

    def _value(self, variable: Plain) -> str:
        return variable["value"] if "value" in variable else self._field(variable["valueFrom"]["fieldRef"]["fieldPath"])

    def _mounting(self, container: Plain) -> str:
        etc = self.folder / "etc"
        if not etc.exists():
            etc.mkdir()
            (etc / "eastgate").mkdir()
            lines = [f"{address} {name}\n" for name, address in {"localhost": "127.0.0.1", **self._hosts}.items()]
            (etc / "hosts").write_text("".join(lines))
            (etc / "resolv.conf").write_text("nameserver 127.0.0.1\n")
        mounts = container["volumeMounts"]
        lines = ["mount -t tmpfs tmpfs /run"]
        if any(mount["mountPath"].startswith("/etc/") for mount in mounts):
            lines.append(f"mount --bind {etc} /etc")
        for mount in mounts:
            lines += [
                f"mkdir -p {mount['mountPath']}",
                f"mount --bind {self.folder / mount['name']} {mount['mountPath']}",
            ]
        return "\n".join(lines) + "\n"

    def run(self, name: str) -> None:
        """Run a container until it succeeds."""
        done = subprocess.run(self.command(name), capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stdout + done.stderr

    def start(self, name: str) -> subprocess.Popen[bytes]:
        """Start a container."""
        return self.start_program(name, self.command(name))

    def start_program(self, name: str, command: list[str]) -> subprocess.Popen[bytes]:
        """Start a program in the background, with a log."""
        with (self.folder / f"{name}.log").open("ab") as log:
            self._running[name] = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
        return self._running[name]

    def stop_program(self, name: str) -> None:
        """Kill a program."""
        process = self._running.pop(name)
        process.kill()
        process.wait()

    def records(self) -> list[Plain]:
        """Return the access log records of the proxy."""
        lines = (self.folder / "eastgate-proxy.log").read_text().splitlines()
        return [json.loads(line) for line in lines if line.startswith("{")]

    def stop(self) -> None:
        for name in list(self._running):
            self.stop_program(name)


def _expanded(word: str, env: dict[str, str]) -> str:
    """Replace variables as Kubernetes does."""
    return re.sub(r"\$(\$|\((\w+)\))", lambda m: "$" if m[1] == "$" else env.get(m[2], m[0]), word)
