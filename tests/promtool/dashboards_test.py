#!/usr/bin/python3
"""The Grafana dashboards: every expression is one that Prometheus accepts, names metrics and labels
that exist, and is written so that it works with any scrape interval and any number of endpoints."""

import json
import pathlib
import re
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "packaging/grafana"
ROW = re.compile(r'WEIR_METRIC\(\s*\w+,\s*"(\w+)",\s*(\w+),\s*"[^"]*",\s*"([^"]*)"')
TABLE = {name: (kind, set(labels.split()))
         for name, kind, labels in ROW.findall((ROOT / "internal/metrics/metrics.def").read_text())}
ADDED_BY_PROMETHEUS = {"job", "instance"}
# Labels with few values, whatever is configured.
SMALL = {"result", "priority", "status", "state", "direction", "cause", "le"}


def family(name):
    return re.sub(r"_(bucket|sum|count)$", "", name) if name not in TABLE else name


def panels(board):
    for panel in board["panels"]:
        yield panel
        yield from panel.get("panels", ())


def expressions(board):
    """(panel, its expression) with the variables filled in as Grafana does."""
    for panel in panels(board):
        for target in panel.get("targets", ()):
            yield panel, target["expr"]


def filled_in(expression):
    for name, value in (("$__rate_interval", "2m"), ("$job", "weir"), ("$instance", "a|b"),
                        ("$upstream", "app")):
        expression = expression.replace(name, value)
    return expression


class Dashboards(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.boards = {path.name: json.loads(path.read_text()) for path in FOLDER.glob("*.json")}

    def each_expression(self):
        for name, board in self.boards.items():
            for panel, expression in expressions(board):
                yield f"{name}: {panel['title']}", expression

    def test_there_are_two_and_each_has_a_fixed_name(self):
        self.assertEqual({name: board["uid"] for name, board in self.boards.items()},
                         {"weir-fleet.json": "weir-fleet", "weir-upstream.json": "weir-upstream"})
        for board in self.boards.values():
            self.assertNotIn("__inputs", board)  # breaks provisioning from files
            ids = [panel["id"] for panel in panels(board)]
            self.assertEqual(len(ids), len(set(ids)))
            self.assertGreater(len(ids), 15)

    def test_the_data_source_is_a_variable(self):
        for name, board in self.boards.items():
            first = board["templating"]["list"][0]
            self.assertEqual((first["name"], first["type"]), ("datasource", "datasource"), name)
            wanted = {"type": "prometheus", "uid": "${datasource}"}
            for variable in board["templating"]["list"][1:]:
                self.assertEqual(variable["datasource"], wanted)
            for panel in panels(board):
                if panel["type"] != "row":
                    self.assertEqual(panel["datasource"], wanted, panel["title"])
                    self.assertTrue(panel["description"], panel["title"])
                    for target in panel["targets"]:
                        self.assertEqual(target["datasource"], wanted, panel["title"])

    def test_links_lead_to_the_other_board(self):
        known = {f"/d/{board['uid']}" for board in self.boards.values()}
        for board in self.boards.values():
            self.assertTrue(board["links"])
            for link in board["links"]:
                self.assertIn(link["url"], known)

    def test_prometheus_accepts_every_expression(self):
        rules = [{"record": f"check:{i}", "expr": filled_in(one)}
                 for i, (_, one) in enumerate(self.each_expression())]
        self.assertGreater(len(rules), 40)
        with tempfile.NamedTemporaryFile("w", suffix=".yml") as file:
            json.dump({"groups": [{"name": "panels", "rules": [
                {**rule, "record": rule["record"].replace("check:", "check:n")}
                for rule in rules]}]}, file)  # JSON is YAML
            file.flush()
            judged = subprocess.run(["promtool", "check", "rules", file.name], text=True,
                                    capture_output=True, check=False)
        self.assertEqual(judged.returncode, 0, judged.stdout + judged.stderr)
        self.assertIn(f"{len(rules)} rules found", judged.stdout)

    def test_every_metric_is_in_the_table_and_has_these_labels(self):
        for where, expression in self.each_expression():
            with self.subTest(where):
                found = re.findall(r"\b(weir_\w+)(?:\{(.*?)\})?", expression)
                self.assertTrue(found)
                for name, matchers in found:
                    self.assertIn(family(name), TABLE)
                    kind, labels = TABLE[family(name)]
                    self.assertEqual(name.endswith("_bucket"), kind == "Histogram", name)
                    used = set(re.findall(r"(\w+)(?:=~?|!=|!~)\"", matchers))
                    self.assertLessEqual({"job", "instance"}, used, "not narrowed to the choice")
                    self.assertLessEqual(used, labels | ADDED_BY_PROMETHEUS, name)
                named = set().union(*(TABLE[family(name)][1] for name, _ in found))
                for group in re.findall(r"\bby \(([^)]*)\)", expression):
                    self.assertLessEqual({one.strip() for one in group.split(",")},
                                         named | ADDED_BY_PROMETHEUS | {"le"}, expression)

    def test_legends_name_labels_that_are_left(self):
        for board in self.boards.values():
            for panel in panels(board):
                for target in panel.get("targets", ()):
                    for label in re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]):
                        groups = re.findall(r"\bby \(([^)]*)\)", target["expr"])
                        self.assertTrue(not groups or label in groups[-1] + groups[0],
                                        f"{panel['title']}: {label}")

    def test_counters_are_rates_over_an_interval_that_grafana_chooses(self):
        for where, expression in self.each_expression():
            with self.subTest(where):
                for name in re.findall(r"\bweir_\w+", expression):
                    if TABLE[family(name)][0] != "Gauge":
                        self.assertRegex(expression, rf"\b(rate|increase)\({name}\b")
                self.assertLessEqual(set(re.findall(r"\[(.*?)\]", expression)),
                                     {"$__rate_interval", "1h"})

    def test_panels_stay_readable_with_a_thousand_endpoints(self):
        """What has one line per configured thing shows the ten that matter."""
        for where, expression in self.each_expression():
            groups = {one.strip() for group in re.findall(r"\bby \(([^)]*)\)", expression)
                      for one in group.split(",")}
            aggregated = re.match(r"(sum|count|min|max|histogram_quantile)\b", expression)
            if not aggregated or groups - SMALL:
                if not re.match(r"min by \(upstream\)", expression):  # one upstream is chosen
                    self.assertTrue(expression.startswith("topk(10,"), f"{where}: {expression}")


if __name__ == "__main__":
    unittest.main()
