"""A node and its pods as network namespaces, without a route to other networks or out of this machine.

Every pod has its own address and one link to the node. The node routes between the pods and translates Service
addresses, as kube-proxy does.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Self

from tests.missing import give_up

PROGRAMS = ("ip", "iptables", "iptables-restore", "ip6tables-restore", "nsenter", "setpriv", "unshare")
NODE = "198.18.255.1"  # of the range for benchmarks and tests
_LIBC = ctypes.CDLL(None, use_errno=True)
_NETWORK = 0x40000000  # CLONE_NEWNET


def need_namespaces() -> None:
    """Skip the test if network namespaces are not available."""
    if os.geteuid() != 0:
        give_up("network namespaces", "run as root")
    if missing := [program for program in PROGRAMS if shutil.which(program) is None]:
        give_up("programs for networks of pods", f"install {', '.join(missing)}")


class Namespace:
    """A network namespace, for as long as a process lives in it."""

    def __init__(self) -> None:
        command = ["setpriv", "--pdeathsig", "KILL", "unshare", "--net", "sleep", "infinity"]
        self._process = subprocess.Popen(command)
        self.pid = self._process.pid
        here = os.readlink("/proc/self/ns/net")
        while os.readlink(f"/proc/{self.pid}/ns/net") == here:
            assert self._process.poll() is None

    def run(self, *command: str, stdin: str = "") -> str:
        """Run a command in the namespace."""
        entered = ["nsenter", "--net", "--target", str(self.pid), "--", *command]
        done = subprocess.run(entered, input=stdin, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        return done.stdout

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Create the sockets of this thread in the namespace."""
        with open("/proc/thread-self/ns/net") as before, open(f"/proc/{self.pid}/ns/net") as there:
            _enter(there.fileno())
            try:
                yield
            finally:
                _enter(before.fileno())

    def stop(self) -> None:
        """End the process; the kernel removes the namespace."""
        self._process.kill()
        self._process.wait()


def _enter(descriptor: int) -> None:
    if _LIBC.setns(descriptor, _NETWORK) != 0:
        raise OSError(ctypes.get_errno(), "setns")


class Network:
    """A node, and a namespace for each of its pods."""

    def __init__(self) -> None:
        self.node = Namespace()
        self.pods: dict[str, Namespace] = {}
        self._chains: dict[tuple[str, int], str] = {}
        self.node.run("ip", "link", "set", "lo", "up")
        self.node.run("sh", "-c", "echo 1 >/proc/sys/net/ipv4/ip_forward")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for namespace in (*self.pods.values(), self.node):
            namespace.stop()

    def add_pod(self, name: str, address: str) -> Namespace:
        """Add a pod with one address."""
        pod = self.pods[name] = Namespace()
        link = f"pod{len(self.pods)}"
        self.node.run("ip", "link", "add", link, "type", "veth", "peer", "eth0", "netns", str(pod.pid))
        self.node.run("ip", "address", "add", f"{NODE}/32", "dev", link)
        self.node.run("ip", "link", "set", link, "up")
        self.node.run("ip", "route", "add", f"{address}/32", "dev", link)
        pod.run("ip", "link", "set", "lo", "up")
        pod.run("ip", "link", "set", "eth0", "up")
        pod.run("ip", "address", "add", f"{address}/32", "dev", "eth0")
        pod.run("ip", "route", "add", f"{NODE}/32", "dev", "eth0")
        pod.run("ip", "route", "add", "default", "via", NODE)
        return pod

    def add_service(self, address: str, port: int, target: str) -> None:
        """Forward a Service address to a pod."""
        arguments = ["-d", address, "-p", "tcp", "--dport", str(port), "-j", "DNAT", "--to-destination", target]
        for chain in ("PREROUTING", "OUTPUT"):
            self.node.run("iptables", "-t", "nat", "-A", chain, *arguments)
        pod = target.partition(":")[0]  # the node returns the calls of the pod to itself
        self.node.run("iptables", "-t", "nat", "-A", "POSTROUTING", "-s", pod, "-d", pod, "-j", "MASQUERADE")

    def add_node_addresses(self, *addresses: str) -> None:
        """Add addresses to the node, and let it call those of Services too."""
        for address in addresses:
            self.node.run("ip", "address", "add", f"{address}/32", "dev", "lo")
        self.node.run("ip", "route", "replace", "local", "10.96.0.0/16", "dev", "lo")

    def balance_service(self, address: str, port: int, targets: Sequence[str]) -> None:
        """Forward new connections of a Service to these targets only."""
        chain = self._chains.get((address, port))
        if chain is None:
            chain = self._chains[address, port] = f"SERVICE-{len(self._chains)}"
            self.node.run("iptables", "-t", "nat", "-N", chain)
            for first in ("PREROUTING", "OUTPUT"):
                rule = ["-d", address, "-p", "tcp", "--dport", str(port), "-j", chain]
                self.node.run("iptables", "-t", "nat", "-A", first, *rule)
        lines = ["*nat", f":{chain} - [0:0]"]
        for number, target in enumerate(targets):
            share = f"-m statistic --mode random --probability {1 / (len(targets) - number):.5f} "
            is_last = number == len(targets) - 1
            lines.append(f"-A {chain} -p tcp {'' if is_last else share}-j DNAT --to-destination {target}")
        self.node.run("iptables-restore", "--noflush", stdin="\n".join([*lines, "COMMIT", ""]))
