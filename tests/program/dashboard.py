# SPDX-License-Identifier: Apache-2.0
"""The panels of docs/grafana-dashboard.json, and a Prometheus server that answers their queries."""

import json
import os
import pathlib
import shutil
import socket
import subprocess
import urllib.parse
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
DASHBOARD = HERE.parents[1] / "docs" / "grafana-dashboard.json"
PROMETHEUS = shutil.which("prometheus")


def panels(rate_interval):
    """(title, unit, [(query, legend)]) of each panel, as Grafana would ask for all instances."""
    for panel in json.loads(DASHBOARD.read_text())["panels"]:
        yield panel["title"], panel["fieldConfig"]["defaults"]["unit"], [
            (target["expr"].replace("$instance", ".*").replace("$__rate_interval", rate_interval),
             target["legendFormat"]) for target in panel["targets"]]


def needs_device(query):
    return "netio_device_" in query


class Prometheus:
    """Scrapes these addresses until kill()."""

    def __init__(self, folder, targets, interval, limit_s):
        self.limit_s = limit_s
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.address = "127.0.0.1:%d" % free.getsockname()[1]
        config = os.path.join(folder, "prometheus.yml")
        with open(config, "w", encoding="utf-8") as file:
            json.dump({"global": {"scrape_interval": interval, "scrape_timeout": interval},
                       "scrape_configs": [{"job_name": "netio", "static_configs": [{"targets": targets}]}]}, file)
        self.process = subprocess.Popen(
            [PROMETHEUS, f"--config.file={config}", f"--web.listen-address={self.address}",
             f"--storage.tsdb.path={os.path.join(folder, 'data')}"],
            stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def ask(self, what, **parameters):
        """The rows of the answer, or None if there is none yet."""
        url = f"http://{self.address}/api/v1/{what}?{urllib.parse.urlencode(parameters)}"
        try:
            with urllib.request.urlopen(url, timeout=self.limit_s) as answer:
                return json.load(answer)["data"]["result"]
        except OSError:
            return None
