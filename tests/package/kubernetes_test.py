"""The Kubernetes manifests: each has the fields that its kind demands and none that it does not
know, what refers to something finds it, and the configuration is good and fits its memory limit."""

import json
import os
import pathlib
import re
import subprocess
import sys
import tomllib
import unittest

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "packaging/kubernetes"
BUILD = pathlib.Path(os.environ.get("WEIR_BUILD", "build/release")).resolve()
sys.path.insert(0, str(FOLDER))

import rules  # noqa: E402

ANY = object()
SELECTOR = {"matchLabels!": ANY}
PROBE = {"exec!": {"command!": [str]}, "periodSeconds": int, "timeoutSeconds": int,
         "failureThreshold": int}
SECURITY = {"allowPrivilegeEscalation": bool, "readOnlyRootFilesystem": bool,
            "runAsNonRoot": bool, "runAsUser": int, "capabilities": {"drop!": [str]},
            "seccompProfile": {"type!": str}}
CONTAINER = {"name!": str, "image!": str, "args": [str], "env": [{"name!": str, "value!": str}],
             "ports": [{"name": str, "containerPort!": int}], "readinessProbe": PROBE,
             "livenessProbe": PROBE, "securityContext": SECURITY,
             "resources": {"requests": {"cpu": str, "memory": str}, "limits": {"memory": str}},
             "volumeMounts": [{"name!": str, "mountPath!": str, "readOnly": bool}]}
POD = {"metadata!": {"labels!": ANY},
       "spec!": {"containers!": [CONTAINER], "automountServiceAccountToken": bool,
                 "enableServiceLinks": bool, "terminationGracePeriodSeconds": int,
                 "securityContext": {"runAsNonRoot": bool, "runAsUser": int, "runAsGroup": int,
                                     "seccompProfile": {"type!": str}},
                 "topologySpreadConstraints": [{"maxSkew!": int, "topologyKey!": str,
                                                "whenUnsatisfiable!": str,
                                                "labelSelector": SELECTOR}],
                 "volumes": [{"name!": str, "configMap": {"name!": str}}]}}
# "!" marks what the API server demands. A kind's schema, as far as these files use it.
KINDS = {
    ("apps/v1", "Deployment"): {
        "replicas": int, "selector!": SELECTOR, "template!": POD,
        "strategy": {"type": str, "rollingUpdate": {"maxUnavailable": int, "maxSurge": int}}},
    ("v1", "Service"): {"selector": ANY,
                        "ports!": [{"name": str, "port!": int, "targetPort": str}]},
    ("policy/v1", "PodDisruptionBudget"): {"maxUnavailable": int, "selector!": SELECTOR},
    ("networking.k8s.io/v1", "NetworkPolicy"): {
        "podSelector!": SELECTOR, "policyTypes": [str],
        "ingress": [{"ports": [{"port": str}],
                     "from": [{"namespaceSelector": SELECTOR}]}]},
    ("monitoring.coreos.com/v1", "PodMonitor"): {
        "selector!": SELECTOR,
        "podMetricsEndpoints!": [{"port": str, "path": str, "interval": str}]},
    ("monitoring.coreos.com/v1", "PrometheusRule"): {"groups": ANY},
}


def faults(value, schema, where):
    """Each way in which `value` is not what `schema` says."""
    if schema is ANY:
        return
    if isinstance(schema, type):
        if type(value) is not schema:
            yield f"{where}: {value!r} is no {schema.__name__}"
    elif isinstance(schema, list):
        if not isinstance(value, list) or not value:
            yield f"{where}: no list with something in it"
            return
        for i, one in enumerate(value):
            yield from faults(one, schema[0], f"{where}[{i}]")
    else:
        known = {name.rstrip("!"): part for name, part in schema.items()}
        for name in schema:
            if name.endswith("!") and name[:-1] not in value:
                yield f"{where}.{name[:-1]}: is missing"
        for name, part in value.items():
            if name not in known:
                yield f"{where}.{name}: is not known"
            else:
                yield from faults(part, known[name], f"{where}.{name}")


def bytes_of(text):
    number, unit = re.fullmatch(r"(\d+)(Mi|Gi)", text).groups()
    return int(number) << {"Mi": 20, "Gi": 30}[unit]


def weir(*arguments, env=None):
    return subprocess.run([str(BUILD / "weir"), *arguments], capture_output=True, text=True,
                          timeout=20, check=False, env={**os.environ, **(env or {})})


class Overlay:
    """A kustomization and its resources."""

    def __init__(self, name):
        self.folder = FOLDER / name
        self.kustomization = yaml.safe_load((self.folder / "kustomization.yaml").read_text())
        self.objects = [one for path in self.kustomization["resources"]
                        for one in yaml.safe_load_all((self.folder / path).read_text())]

    def one(self, kind):
        found, = (one for one in self.objects if one["kind"] == kind)
        return found

    def pod(self):
        return self.one("Deployment")["spec"]["template"]

    def gateway(self):
        found, = (one for one in self.pod()["spec"]["containers"] if one["name"] == "weir")
        return found


class Manifests(unittest.TestCase):
    def setUp(self):
        self.overlays = {name: Overlay(name) for name in ("base", "sidecar")}

    def test_each_object_is_what_its_kind_demands(self):
        for name, overlay in self.overlays.items():
            for one in overlay.objects:
                where = f"{name}/{one['kind']}"
                self.assertEqual(set(one), {"apiVersion", "kind", "metadata", "spec"}, where)
                self.assertRegex(one["metadata"]["name"], r"^[a-z][a-z0-9-]*$")
                schema = KINDS[one["apiVersion"], one["kind"]]
                self.assertEqual(list(faults(one["spec"], schema, where)), [])

    def test_every_file_is_in_its_kustomization(self):
        for overlay in self.overlays.values():
            self.assertEqual({path.name for path in overlay.folder.glob("*.yaml")},
                             {*overlay.kustomization["resources"], "kustomization.yaml"})
            for container in overlay.pod()["spec"]["containers"]:
                if container["name"] == "weir":
                    image, = overlay.kustomization["images"]
                    self.assertEqual(image["name"], container["image"])
                    self.assertEqual(weir("--version").stdout, f"weir {image['newTag']}\n")

    def test_selectors_find_the_pods(self):
        for name, overlay in self.overlays.items():
            labels = overlay.pod()["metadata"]["labels"]
            checked = 0
            for one in overlay.objects:
                spec = one["spec"]
                selector = spec.get("selector", spec.get("podSelector"))
                if selector is None:
                    continue
                wanted = selector.get("matchLabels", selector)
                self.assertLessEqual(wanted.items(), labels.items(), f"{name}/{one['kind']}")
                checked += 1
            self.assertEqual(checked, {"base": 5, "sidecar": 2}[name])

    def test_ports_by_name_are_those_of_the_container(self):
        for overlay in self.overlays.values():
            names = {port["name"]: port["containerPort"] for port in overlay.gateway()["ports"]}
            self.assertEqual(names, {"http": 8080, "admin": 9901})
            for one in overlay.objects:
                for port in one["spec"].get("ports", ()):
                    self.assertIn(port["targetPort"], names)
        base = self.overlays["base"]
        for rule in base.one("NetworkPolicy")["spec"]["ingress"]:
            for port in rule["ports"]:
                self.assertIn(port["port"], names)
                self.assertEqual("from" in rule, port["port"] == "admin")
        for endpoint in base.one("PodMonitor")["spec"]["podMetricsEndpoints"]:
            self.assertEqual((endpoint["port"], endpoint["path"]), ("admin", "/metrics"))

    def test_the_configuration_is_good_and_listens_on_these_ports(self):
        base = self.overlays["base"]
        path = base.folder / "weir.toml"
        checked = weir("check", str(path))
        self.assertEqual(checked.returncode, 0, checked.stderr)
        config = tomllib.loads(path.read_text())
        self.assertEqual(config["listen"]["addresses"], [":8080"])
        self.assertEqual(config["admin"]["listen"], ":9901")
        generator, = base.kustomization["configMapGenerator"]
        self.assertEqual(generator["files"], ["weir.toml"])
        volume, = base.pod()["spec"]["volumes"]
        self.assertEqual(volume["configMap"]["name"], generator["name"])
        mount, = base.gateway()["volumeMounts"]
        self.assertEqual(mount["name"], volume["name"])
        self.assertEqual(base.gateway()["args"],
                         ["run", "--config", mount["mountPath"] + "/weir.toml"])

    def test_a_pod_has_time_to_drain(self):
        admin = tomllib.loads((FOLDER / "base/weir.toml").read_text())["admin"]
        grace = self.overlays["base"].pod()["spec"]["terminationGracePeriodSeconds"] * 1000
        self.assertGreater(grace, admin["drain_delay_ms"] + admin["drain_timeout_ms"])

    def test_the_memory_ceiling_fits_the_limit(self):
        base, sidecar = self.overlays["base"].gateway(), self.overlays["sidecar"].gateway()
        variables = {one["name"]: one["value"] for one in sidecar["env"]}
        for container, arguments, env in (
                (base, [str(FOLDER / "base/weir.toml")], {}),
                (sidecar, [str(ROOT / "packaging/weir.toml")], variables)):
            page = json.loads(weir("budget", "--json", *arguments, env=env).stdout)
            limit = bytes_of(container["resources"]["limits"]["memory"])
            self.assertLessEqual(page["ceiling_bytes"] * 1.25, limit)
            self.assertEqual(container["resources"]["requests"]["memory"],
                             container["resources"]["limits"]["memory"])

    def test_the_gateway_has_no_privilege(self):
        for name, overlay in self.overlays.items():
            container = overlay.gateway()
            context = {**overlay.pod()["spec"].get("securityContext", {}),
                       **container["securityContext"]}
            self.assertEqual((context["runAsNonRoot"], context["readOnlyRootFilesystem"],
                              context["allowPrivilegeEscalation"], context["capabilities"]["drop"]),
                             (True, True, False, ["ALL"]), name)
            self.assertEqual(context["runAsUser"], 65532, "the image's user")

    def test_health_checks_are_those_of_the_program(self):
        for overlay in self.overlays.values():
            for name, arguments in (("livenessProbe", []), ("readinessProbe", ["--ready"])):
                probe = overlay.gateway()[name]
                self.assertEqual(probe["exec"]["command"],
                                 ["/usr/bin/weir", "probe", *arguments])
                # The probe ends by itself before it is ended.
                self.assertGreater(probe["timeoutSeconds"], 2)
        self.assertIn("Longest time to wait for all of it [2000]", weir("probe", "--help").stdout)

    def test_the_sidecar_runs_with_these_arguments(self):
        arguments = self.overlays["sidecar"].gateway()["args"]
        options = dict(zip(arguments[1::2], arguments[2::2]))
        self.assertEqual((arguments[0], options["--listen"], options["--admin"]),
                         ("run", ":8080", ":9901"))

    def test_the_rules_are_those_of_the_package(self):
        path = FOLDER / "base/rules.yaml"
        self.assertEqual(path.read_text(), rules.made(),
                         "run: cmake --build build/release --target reference")
        groups = self.overlays["base"].one("PrometheusRule")["spec"]["groups"]
        packaged = [group for file in sorted((ROOT / "packaging/prometheus").glob("*.yml"))
                    for group in yaml.safe_load(file.read_text())["groups"]]
        self.assertEqual(groups, packaged)


if __name__ == "__main__":
    unittest.main()
