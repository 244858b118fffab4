#!/usr/bin/python3
"""archive.py ROOT VERSION OUT: an image archive (docker load, podman load, skopeo, kind load) of
one layer, ROOT. Needs no container tools and no privileges; the same ROOT gives the same bytes."""

import hashlib
import io
import json
import os
import platform
import sys
import tarfile

USER = 65532
OWNED_BY_USER = "run/weir"
MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}


def plain(entry):
    entry.uid = entry.gid = USER if entry.name == OWNED_BY_USER else 0
    entry.uname = entry.gname = ""
    entry.mtime = 0
    return entry


def layer_of(root):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as archive:
        paths = [os.path.relpath(os.path.join(folder, name), root)
                 for folder, folders, names in os.walk(root) for name in folders + names]
        for path in sorted(paths):
            archive.add(os.path.join(root, path), arcname=path, recursive=False, filter=plain)
    return out.getvalue()


def config_of(layer, version):
    second = 1_000_000_000
    return {
        "architecture": MACHINES.get(platform.machine(), platform.machine()), "os": "linux",
        "config": {
            "User": f"{USER}:{USER}",
            "ExposedPorts": {"8080/tcp": {}},
            "Entrypoint": ["/usr/bin/weir"],
            "Cmd": ["run", "--config", "/etc/weir/weir.toml"],
            "Healthcheck": {"Test": ["CMD", "/usr/bin/weir", "probe"], "Interval": 10 * second,
                            "Timeout": 5 * second, "StartPeriod": 5 * second, "Retries": 3},
            "StopSignal": "SIGTERM",
            "Labels": {"org.opencontainers.image.title": "weir",
                       "org.opencontainers.image.version": version,
                       "org.opencontainers.image.licenses": "Apache-2.0"}},
        "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(layer).hexdigest()]},
        "history": [{"created_by": "packaging/container/build.sh"}]}


def write(out, root, version):
    layer = layer_of(root)
    config = json.dumps(config_of(layer, version)).encode()
    config_name = hashlib.sha256(config).hexdigest() + ".json"
    manifest = json.dumps([{"Config": config_name, "RepoTags": [f"weir:{version}"],
                            "Layers": ["layer.tar"]}]).encode()
    with tarfile.open(out, "w", format=tarfile.GNU_FORMAT) as archive:
        for name, data in ((config_name, config), ("layer.tar", layer),
                           ("manifest.json", manifest)):
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit("usage: archive.py ROOT VERSION OUT")
    write(sys.argv[3], sys.argv[1], sys.argv[2])
