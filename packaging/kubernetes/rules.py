#!/usr/bin/python3
"""rules.py: the rules of packaging/prometheus as a PrometheusRule, for base/rules.yaml."""

import pathlib

HEAD = """\
# Made from packaging/prometheus by packaging/kubernetes/rules.py; do not edit by hand.
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: weir
  labels:
    app.kubernetes.io/name: weir
spec:
  groups:
"""


def made():
    out = HEAD
    for path in sorted((pathlib.Path(__file__).parents[1] / "prometheus").glob("*.yml")):
        for line in path.read_text(encoding="utf-8").partition("\ngroups:\n")[2].splitlines():
            out += f"  {line}\n" if line else "\n"
    return out


if __name__ == "__main__":
    print(made(), end="")
