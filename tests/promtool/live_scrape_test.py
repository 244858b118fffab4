#!/usr/bin/python3
"""The alert rules, the table of metrics and a running gateway name the same metrics, and the
thresholds that the rules compare with are those in force."""

import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/integration"))

from processes import Origin, ProcessTest, Weir, get, wait_until  # noqa: E402


def rule_expressions():
    """{alert: its expression} of the packaged rules."""
    found, alert, indent = {}, None, None
    for line in (ROOT / "packaging/prometheus/weir.rules.yml").read_text().splitlines():
        depth = len(line) - len(line.lstrip())
        if match := re.match(r"\s*- alert: (\w+)", line):
            alert, indent = match[1], None
        elif match := re.match(r"\s*expr: (.*)", line):
            found[alert], indent = match[1].lstrip("|"), depth
        elif indent is not None and depth > indent:
            found[alert] += " " + line.strip()
        else:
            indent = None
    return found


def metrics_in(expression):
    return set(re.findall(r"\bweir_\w+", expression))


def table():
    return set(re.findall(r'"((?:weir|process)_\w+)"',
                          (ROOT / "internal/metrics/metrics.def").read_text()))


class LiveScrape(ProcessTest):
    def setUp(self):
        origins = [self.started(Origin()) for _ in range(2)]
        weir = self.started(Weir(config=self.app_config([one.port for one in origins]), env={
            "WEIR_MEMORY_PRESSURE_THRESHOLD": "0.5", "WEIR_MEMORY_CRITICAL_THRESHOLD": "0.625",
            "WEIR_PRIORITY_WARN_THRESHOLD": "0.75"}))
        self.assertEqual(get(weir.port).status, 200)  # what is measured has no series before
        # The latency of an endpoint is there when its first window is over.
        wait_until(lambda: b"\nweir_endpoint_latency_seconds{" in weir.page("/metrics").body)
        self.page = weir.page("/metrics").body.decode()
        self.families = set(re.findall(r"^# TYPE (\w+)", self.page, re.MULTILINE))

    def value(self, name):
        return float(re.search(rf"^{name} (\S+)$", self.page, re.MULTILINE)[1])

    def test_every_metric_of_the_table_is_exported_and_no_other(self):
        self.assertEqual(self.families, table())

    def test_every_alert_watches_series_that_are_there(self):
        rules = rule_expressions()
        self.assertGreaterEqual(len(rules), 9)
        for alert, expression in rules.items():
            names = metrics_in(expression)
            self.assertTrue(names, alert)
            for name in names:
                self.assertRegex(self.page, rf"(?m)^{name}(_count)?[{{ ]", alert)

    def test_thresholds_of_the_configuration_are_metrics_and_no_text(self):
        self.assertEqual(self.value("weir_admission_memory_pressure_threshold"), 0.5)
        self.assertEqual(self.value("weir_admission_memory_critical_threshold"), 0.625)
        self.assertEqual(self.value("weir_admission_warn_threshold"), 0.75)
        for alert, expression in rule_expressions().items():
            if "memory_usage" in expression or "max_concurrent" in expression:
                self.assertNotRegex(expression, r"\d", alert)


if __name__ == "__main__":
    unittest.main()
