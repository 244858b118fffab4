"""What the simulator says about the gateway's overload set-up, and what the gateway then does: one
scenario file describes both, goodput and 99th percentile differ by less than a tenth."""

import json
import math
import pathlib
import subprocess
import tomllib
import unittest

from processes import WEIR, Origin, ProcessTest, Weir, result_of, start_traffic
from stolen_time import StolenTime

SCENARIO = pathlib.Path(__file__).parents[2] / "scenarios" / "gateway-10x.toml"
TOLERANCE = 0.10

ROUTE = """
[[route]]
path_prefix = "/{name}"
priority = "{priority}"
upstream = "app"
"""

FIXED = """
[admission.limit]
policy = "fixed"
initial_limit = 64
"""


def seconds(text):
    """"1500ms" → 1.5"""
    for unit, scale in (("ms", 0.001), ("s", 1)):
        if text.endswith(unit):
            return float(text[:-len(unit)]) * scale
    raise ValueError(text)


class Case:
    """A service, a gateway before it and what comes; and the same in the simulator."""

    def __init__(self, test, title, limit="", rates=None):
        with open(SCENARIO, "rb") as file:
            scenario = tomllib.load(file)
        service = scenario["service"][0]
        self.title = title
        self.rates = rates or {load["name"]: load["rate"] for load in scenario["load"]}
        self.settle = seconds(scenario["settle"])
        self.length = seconds(scenario["duration"]) - self.settle
        least, most = (round(seconds(service["time"][end]) * 1000) for end in ("min", "max"))
        self.origin = test.started(Origin(service["workers"], least, service_ms_max=most))
        routes = "".join(ROUTE.format(name=load["name"], priority=load["class"])
                         for load in scenario["load"])
        self.gateway = test.started(Weir(config=f"""
[[upstream]]
name = "app"
endpoints = ["127.0.0.1:{self.origin.port}"]
{routes}
{limit}
[admin]
access_log = "off"
"""))

    def foresee(self):
        """The simulator's report, with the admission of the gateway's own file."""
        command = [WEIR, "simulate", str(SCENARIO), "--json",
                   "--set", f"service.backend.config={self.gateway.config_path}"]
        for name, rate in self.rates.items():
            command += ["--set", f"load.{name}.rate={rate}"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        if done.returncode not in (0, 1):
            raise AssertionError(done.stderr)
        self.foreseen = {load["load"]: load for load in json.loads(done.stdout)[0]["loads"]}

    def start(self):
        # Without a pause before what is measured: after one the lines of the waiting room do not
        # stand any more, and until they do again their requests wait up to 50 ms instead of 10.
        # The simulated run has no such pause.
        self.traffic = start_traffic(self.gateway.port, self.length,
                                     [f"/{name}:{rate}" for name, rate in self.rates.items()],
                                     settle=self.settle)

    def finish(self):
        result = result_of(self.traffic)
        self.real = {}
        for name, one in result["classes"].items():
            one["goodput_per_second"] = one["ok"] / result["seconds"]
            self.real[name.strip("/")] = one

    def show(self):
        for name, real in self.real.items():
            foreseen = self.foreseen[name]
            print(f"{self.title}, {name}: goodput {real['goodput_per_second']:.1f}/s, foreseen "
                  f"{foreseen['goodput_per_second']:.1f}/s; p99 {real['ok_p99_ms']:.1f} ms, "
                  f"foreseen {foreseen['latency_p99_ms']:.1f} ms")

    def misses(self, excuse):
        """Where the simulator was wrong by a tenth or more. A share of `excuse` of all requests
        may be as late as it likes, or not answered."""
        for name, real in self.real.items():
            if real["unsent"] >= 0.02 * real["offered"]:
                yield f"{self.title}, {name}: {real['unsent']} of the load were not offered"
        yield from self.miss("goodput of all", TOLERANCE + excuse,
                             sum(one["goodput_per_second"] for one in self.real.values()),
                             sum(one["goodput_per_second"] for one in self.foreseen.values()))
        for name, one in self.foreseen.items():
            if one["ok"] < 1000:
                continue  # too few for a 99th percentile
            real = self.real[name]
            yield from self.miss(f"goodput of {name}", TOLERANCE + excuse,
                                 real["goodput_per_second"], one["goodput_per_second"])
            foreseen = one["latency_p99_ms"]
            of_the_unhindered = real["ok_percentiles_ms"][max(0, 99 - math.ceil(100 * excuse))]
            nearest = min(max(foreseen, of_the_unhindered), real["ok_p99_ms"])
            yield from self.miss(f"p99 of {name}", TOLERANCE, nearest, foreseen)

    def miss(self, what, tolerance, real, expected):
        if abs(real - expected) >= tolerance * expected:
            yield f"{self.title}, {what}: {real:.1f}, foreseen {expected:.1f}"


class Prediction(ProcessTest):
    # Service times far above what a scheduler is late by, and a run so long that a moment in which
    # the machine was busy otherwise is not one request in a hundred.
    def test_what_was_foreseen_happens(self):
        cases = [Case(self, "ten times the capacity"),
                 Case(self, "with a fixed limit", FIXED),
                 Case(self, "within the capacity", "", {"high": 50, "normal": 80, "low": 10})]
        for case in cases:
            case.foresee()
        for _ in range(2):
            with StolenTime() as stolen:
                self.run_all(cases)
            for case in cases:
                case.show()
            # A machine that stands still now and then is not what was simulated.
            if not self.misses(cases, 0) or not stolen.excuse:
                break
        self.assertEqual(self.misses(cases, stolen.excuse), [],
                         f"{stolen.share:.1%} of the processors' time was taken away")

    @staticmethod
    def misses(cases, excuse):
        return [miss for case in cases for miss in case.misses(excuse)]

    @staticmethod
    def run_all(cases):
        for case in cases:
            case.start()
        for case in cases:
            case.finish()


if __name__ == "__main__":
    unittest.main()
