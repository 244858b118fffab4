"""What the macro benchmarks share: processes on a core of their own, CPU time per request, and
interleaved rounds, so that a slow minute of the machine falls on every contender."""

import contextlib
import json
import os
import pathlib
import re
import resource
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "release"
SERVER_CORE = "0"
CLIENT_CORE = "1"
ANSWER_BYTES = 128  # of the servers that are compared


def raise_open_files():
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_for_port(port, seconds=10.0):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", port), 0.5).close()
            return
        time.sleep(0.02)
    raise RuntimeError(f"nobody listens on port {port}")


class Process:
    """A process (with its children) pinned to a core, ended at the latest when the program ends."""

    def __init__(self, command, core, port=None, stdin=None):
        self.log = tempfile.TemporaryFile()
        self.popen = subprocess.Popen(["taskset", "-c", core, *map(str, command)], stdin=stdin,
                                      stdout=self.log, stderr=subprocess.STDOUT,
                                      start_new_session=True)
        self.port = port
        if port:
            try:
                wait_for_port(port)
            except RuntimeError as error:
                self.log.seek(0)
                raise RuntimeError(f"{error}: {self.log.read().decode()}") from error

    def pids(self):
        """The process and all that descend from it."""
        found, todo = [], [self.popen.pid]
        while todo:
            pid = todo.pop()
            found.append(pid)
            with contextlib.suppress(OSError):
                for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
                    todo += [int(c) for c in (task / "children").read_text().split()]
        return found

    def cpu_ns(self):
        """Scheduler accounting: exact to the nanosecond, all threads."""
        total = 0
        for pid in self.pids():
            for stat in pathlib.Path(f"/proc/{pid}/task").glob("*/schedstat"):
                with contextlib.suppress(OSError):
                    total += int(stat.read_text().split()[0])
        return total

    def anonymous_kb(self):
        total = 0
        for pid in self.pids():
            with contextlib.suppress(OSError):
                text = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
                total += int(re.search(r"^Anonymous:\s+(\d+)", text, re.M).group(1))
        return total

    def stop(self):
        if self.popen.poll() is None:
            self.popen.terminate()
            try:
                self.popen.wait(5)
            except subprocess.TimeoutExpired:
                os.killpg(self.popen.pid, 9)
                self.popen.wait()
        self.log.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


def wrk(url, seconds, connections=64, headers=(), core=CLIENT_CORE):
    """Requests answered, errors, and the generator's own CPU time in ns."""
    command = ["taskset", "-c", core, "wrk", "-t1", f"-c{connections}", f"-d{seconds}s",
               "--latency"]
    for header in headers:
        command += ["-H", header]
    before = os.times()
    text = subprocess.run([*command, url], capture_output=True, text=True, check=True).stdout
    after = os.times()
    errors = sum(int(n) for n in re.findall(r"(?:connect|read|write|timeout) (\d+)", text))
    refused = re.search(r"Non-2xx or 3xx responses: (\d+)", text)
    return {"requests": int(re.search(r"(\d+) requests in", text).group(1)), "errors": errors,
            "not_2xx": int(refused.group(1)) if refused else 0,
            "generator_cpu_ns": int(1e9 * (after.children_user - before.children_user +
                                           after.children_system - before.children_system))}


def h2load(url, options, log=None):
    """Requests answered with ANSWER_BYTES each, and the generator's own CPU time in ns. Times per
    request go to the file `log`."""
    command = ["taskset", "-c", CLIENT_CORE, "h2load", "-t1", *options]
    if log:
        command += [f"--log-file={log}"]
    before = os.times()
    text = subprocess.run([*command, "--tls13-ciphers=TLS_AES_128_GCM_SHA256", url],
                          capture_output=True, text=True, check=True).stdout
    after = os.times()
    started, done, errored = map(int, re.search(
        r"(\d+) started, (\d+) done, .* (\d+) errored", text).groups())
    # h2load finds no status in HAProxy's "HTTP/1.1 200 " without a phrase: the bytes must be right.
    bytes_seen = int(re.search(r"\((\d+)\) data", text).group(1))
    if errored or not done * ANSWER_BYTES <= bytes_seen <= started * ANSWER_BYTES:
        raise RuntimeError(text)
    return done, int(1e9 * (after.children_user - before.children_user +
                            after.children_system - before.children_system))


def interleaved(contenders, rounds, measure):
    """measure(name) for all contenders, A-B-B-A, `rounds` times; name -> list of results."""
    results = {name: [] for name in contenders}
    order = list(contenders)
    for i in range(rounds):
        for name in order if i % 2 == 0 else reversed(order):
            results[name].append(measure(name))
            print(".", end="", flush=True, file=sys.stderr)
    print(file=sys.stderr)
    return results


def median(values):
    return statistics.median(values)


def spread(values):
    return f"{min(values):.1f}–{max(values):.1f}"


def nginx(directory, body, connections=16384):
    """nginx with one worker; `body` is the inside of its http block. Returns the command."""
    conf = pathlib.Path(directory) / "nginx.conf"
    conf.write_text(f"""
worker_processes 1; daemon off; pid {directory}/nginx.pid; error_log stderr crit;
events {{ worker_connections {connections}; }}
http {{ access_log off; keepalive_requests 1000000000; keepalive_timeout 600s;
  client_body_temp_path {directory}/b; proxy_temp_path {directory}/p;
  fastcgi_temp_path {directory}/f; uwsgi_temp_path {directory}/u; scgi_temp_path {directory}/s;
  {body} }}
""")
    program = shutil.which("nginx") or "/usr/sbin/nginx"
    return [program, "-p", directory, "-c", conf]


def report(title, rows, json_path, extra=None):
    """rows: list of dicts with the same keys; prints a table, writes JSON if asked."""
    print(f"\n{title}")
    keys = list(rows[0])
    table = [keys] + [[f"{r[k]:.2f}" if isinstance(r[k], float) else str(r[k]) for k in keys]
                      for r in rows]
    widths = [max(len(line[i]) for line in table) for i in range(len(keys))]
    for line in table:
        print("  " + "  ".join(cell.ljust(width) for cell, width in zip(line, widths)))
    if json_path:
        path = pathlib.Path(json_path)
        known = json.loads(path.read_text()) if path.exists() else {}
        known[title] = {"rows": rows, **(extra or {})}
        path.write_text(json.dumps(known, indent=1) + "\n")
