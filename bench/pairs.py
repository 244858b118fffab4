"""The gateway as a proxy beside HAProxy, nginx, h2o and nghttpx, for pairs of protocols.

  cost     CPU per proxied request (128-byte answers), admission on; generator and backend run on
           the other core; total CPU of all processes beside it
  latency  p50 and p99 through each proxy and without one, at half of the load that the slowest of
           them can carry; requests start on a schedule, whatever the answers do
"""

import contextlib
import pathlib
import tempfile

import harness
import proxies
from harness import BUILD, CLIENT_CORE, Process

# name -> (front, back, h2load's options)
PAIRS = {"h1 to h1": ("h1", "h1", ["--h1", "-c64"]),
         "h1 to h2": ("h1", "h2", ["--h1", "-c64"]),
         "h2+tls to h2": ("tls", "h2", ["-c16", "-m10"]),
         "h2+tls to h1+tls": ("tls", "h1+tls", ["-c16", "-m10"])}


def backend(directory, certificate, back):
    """Answers 128 bytes on the generator's core: nginx where a certificate is checked."""
    port = harness.free_port()
    if not back.endswith("tls"):
        return Process([BUILD / "examples" / "hello_server", "--port", port, "--loops", 1],
                       CLIENT_CORE, port)
    own = tempfile.mkdtemp(dir=directory)
    answer = "x" * harness.ANSWER_BYTES
    body = (f"server {{ listen 127.0.0.1:{port} ssl; ssl_protocols TLSv1.3; "
            f"ssl_certificate {certificate.cert}; ssl_certificate_key {certificate.key}; "
            f'location / {{ default_type text/plain; return 200 "{answer}"; }} }}')
    return Process(harness.nginx(own, body), CLIENT_CORE, port)


def url_of(front, port):
    return f"{'https' if front == 'tls' else 'http'}://127.0.0.1:{port}/"


def each(part, options):
    """part: cost or latency, for every pair or the one that was asked for."""
    for pair in PAIRS:
        if options.pair in (None, pair):
            with tempfile.TemporaryDirectory() as directory:
                part(pair, directory, proxies.Certificate(directory), options)


def cost(pair, directory, certificate, options):
    front, back, load = PAIRS[pair]
    with contextlib.ExitStack() as stack:
        origin = stack.enter_context(backend(directory, certificate, back))
        contenders = proxies.started(stack, directory, certificate, front, back, origin.port)

        def measure(name):
            process = contenders[name]
            own, behind = process.cpu_ns(), origin.cpu_ns()
            good, generator = harness.h2load(url_of(front, process.port),
                                             [*load, f"-D{options.seconds}"])
            own, behind = process.cpu_ns() - own, origin.cpu_ns() - behind
            return {"own": own / good / 1e3, "total": (own + behind + generator) / good / 1e3}

        for name in contenders:
            measure(name)  # warm-up
        results = harness.interleaved(contenders, options.rounds, measure)
    medians = {name: harness.median([r["own"] for r in runs]) for name, runs in results.items()}
    best = min(value for name, value in medians.items() if name != "weir")
    harness.report(f"proxy: CPU per request, {pair}, 128 bytes", [
        {"proxy": name, "cpu_us": medians[name],
         "range": harness.spread([r["own"] for r in runs]), "x_best_other": medians[name] / best,
         "total_cpu_us": harness.median([r["total"] for r in runs])}
        for name, runs in results.items()], options.json)


def percentiles(log):
    times = sorted(int(line.split("\t")[2]) for line in pathlib.Path(log).read_text().splitlines())
    return {"p50": times[len(times) // 2], "p99": times[len(times) * 99 // 100]}


def latency(pair, directory, certificate, options):
    front, back, load = PAIRS[pair]
    clients = 16
    kind = ["--h1"] if "--h1" in load else ["-m10"]
    with contextlib.ExitStack() as stack:
        origin = stack.enter_context(backend(directory, certificate, back))
        contenders = proxies.started(stack, directory, certificate, front, back, origin.port)
        slowest = min(harness.h2load(url_of(front, process.port), [*load, "-D1"])[0]
                      for process in contenders.values())
        rate = max(1, slowest // 2 // clients)
        log = pathlib.Path(directory) / "requests.log"

        def measure(name):
            where = (url_of(front, contenders[name].port) if name != "no proxy" else
                     url_of("tls" if back.endswith("tls") else "h1", origin.port))
            direct = ["--h1"] if back.startswith("h1") else ["-m10"]
            how = kind if name != "no proxy" else direct
            pace = [f"-c{clients}", f"--rps={rate}", f"-D{options.seconds}"]
            harness.h2load(where, [*how, *pace], log)
            return percentiles(log)

        results = harness.interleaved([*contenders, "no proxy"], options.rounds, measure)
    harness.report(f"proxy: latency in µs at {rate * clients} requests a second, {pair}", [
        {"proxy": name, **{p: harness.median([r[p] for r in runs]) for p in ("p50", "p99")}}
        for name, runs in results.items()], options.json)
