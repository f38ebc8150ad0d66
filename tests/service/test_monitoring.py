#!/usr/bin/python3
"""deploy/prometheus and deploy/grafana with a real Prometheus: it scrapes the services, every query of the dashboard has an
answer, every alert can be raised, and docs/operations.md says what to do about each."""

import json
import re
import subprocess
import tempfile
import urllib.error
import urllib.parse
import urllib.request

import yaml
from world import ROOT, World, check, check_equal, main, test, test_in, wait_until
from world.servers import Server

ALERTS = ROOT / "deploy" / "prometheus" / "alerts.yml"
DASHBOARD = json.loads((ROOT / "deploy" / "grafana" / "pawl.json").read_text(encoding="utf-8"))
RULES = {rule["alert"]: rule for rule in yaml.safe_load(ALERTS.read_text(encoding="utf-8"))["groups"][0]["rules"]}
WORLD = World()
NAMES = [WORLD.name() for _ in range(3)]
GRANT = [WORLD.acquire(name, ttl_ms=600_000) for name in NAMES][0]

# Of each alert the series that raise it: name, values at each minute (in Prometheus' notation for tests).
RISES = "0+9x99"
RAISED = {
    "PawlDown": [('up{job="pawl-lease"}', "0x99")],
    "PawlNotReady": [("pawl_ready", "0x99")],
    "PawlNotAdmitted": [('pawl_problems_total{code="store-not-admitted"}', RISES), ("pawl_ready", "0x99")],
    "PawlStoreRefused": [('pawl_problems_total{code="floor-reached"}', RISES)],
    "PawlStoreBehind": [('pawl_problems_total{code="store-behind"}', RISES)],
    "PawlStoreNotKept": [('pawl_problems_total{code="store-not-kept"}', RISES), ("pawl_ready", "0x99")],
    "PawlStoreElecting": [('pawl_problems_total{code="store-unavailable"}', RISES), ("pawl_ready", "0x99")],
    "PawlNodeAway": [('pawl_store_nodes{state="away"}', "0x9 1x89")],
    "PawlRegistrarMissing": [('pawl_store_registrars{what="heard"}', "2x99"), ('pawl_store_registrars{what="of"}', "3x99")],
    "PawlSentinelMissing": [('pawl_store_sentinels{what="heard"}', "2x99"), ('pawl_store_sentinels{what="of"}', "3x99")],
    "PawlCertificateEnds": [('pawl_tls_ends_seconds{file="tls-cert"}', "605000-60x99")],
    "PawlStoreFull": [('pawl_problems_total{code="store-full"}', RISES)],
    "PawlStoreFilling": [('pawl_store_memory_bytes{what="used"}', "80x99"), ('pawl_store_memory_bytes{what="allowed"}', "100x99")],
    "PawlInDoubt": [("pawl_gateway_in_doubt", "1x99")],
    "PawlOutcomeUnknown": [('pawl_store_calls_total{outcome="unknown"}', RISES)],
    "PawlStoreSlow": [('pawl_store_call_seconds_bucket{le="0.25"}', "0+1x99"), ('pawl_store_call_seconds_bucket{le="0.5"}', RISES),
                      ('pawl_store_call_seconds_bucket{le="+Inf"}', RISES)],
    "PawlReconnects": [("pawl_store_reconnects_total", RISES)],
    "PawlWaitersStarve": [("pawl_lease_waiting", "1x99"), ('pawl_lease_waits_total{what="granted"}', "5x99")],
    "PawlConnectionsRefused": [('pawl_http_connections_closed_total{reason="max-connections"}', RISES)],
    "PawlFilesRunOut": [('process_open_fds{job="pawl-lease"}', "90x99"), ('process_max_fds{job="pawl-lease"}', "100x99")],
    "PawlRestarts": [('process_start_time_seconds{job="pawl-lease"}', RISES)],
    "PawlVersionsDiffer": [('pawl_build_info{version="1"}', "1x99"), ('pawl_build_info{version="2"}', "1x99")],
    "PawlAccessFilesDiffer": [('pawl_access_file_info{hash="1"}', "1x99"), ('pawl_access_file_info{hash="2"}', "1x99")],
}
# A failover as it is scraped with load: some seconds of 503, and again as nodes join.
FAILOVER = [("pawl_ready", "1x9 0 1x99"), *((f'pawl_problems_total{{code="{code}"}}', values) for code, values in (
    ("store-unavailable", "0x9 98x99"), ("store-not-kept", "0x9 9 28x99"), ("store-not-admitted", "0x9 4 6 6 6 9x99")))]


def promtool(*words):
    done = subprocess.run(["promtool", *words], capture_output=True, text=True, check=False)
    check_equal(done.returncode, 0, done.stdout + done.stderr)


@test
def promtool_finds_nothing_wrong():
    promtool("check", "rules", str(ALERTS))
    promtool("check", "config", str(ALERTS.parent / "prometheus.yml"))


def rules_tested(every, tests):
    with tempfile.NamedTemporaryFile("w", suffix=".yml", encoding="utf-8") as file:
        yaml.safe_dump({"rule_files": [str(ALERTS)], "evaluation_interval": every, "tests": [
            {"interval": every, "input_series": [{"series": name, "values": values} for name, values in series],
             "promql_expr_test": [{"expr": f"count({alerts})", "eval_time": at, "exp_samples": [{"value": 1, "labels": "{}"}] if raised else []}]}
            for series, alerts, at, raised in tests]}, file)
        file.flush()
        promtool("test", "rules", file.name)


@test
def every_alert_can_be_raised_and_is_not_raised_by_nothing():
    check_equal(set(RAISED), set(RULES))
    well = [(name, "1x99") for name in ('up{job="pawl-lease"}', "pawl_ready")]
    rules_tested("1m", [(well, "ALERTS", "98m", False),
                        *((series, f'ALERTS{{alertname="{alert}",alertstate="firing"}}', "98m", True) for alert, series in RAISED.items())])


@test
def a_failover_that_goes_well_raises_no_page():
    rules_tested("10s", [(FAILOVER, 'count_over_time(ALERTS{alertstate="firing",severity="page"}[12m])', "12m", False)])


# What a service exports only with several nodes, or an access file: looked for in the source.
NOT_EVERYWHERE = {"pawl_access_file_info", "pawl_store_nodes", "pawl_store_registrars", "pawl_store_sentinels", "pawl_tls_ends_seconds"}


@test
def each_alert_asks_for_names_and_labels_that_are_exported():
    exported = "".join(client("GET", "/metrics", held=False).body.decode() for client in (WORLD.lease, WORLD.gateway))
    source = "".join(path.read_text(encoding="utf-8") for room in ("shared", "lease") for path in (ROOT / room).rglob("*.c"))
    for alert, rule in RULES.items():
        for name, labels in re.findall(r"\b((?:pawl|process)_\w+)(?:\{([^}]*)\})?", rule["expr"]):
            lines = "\n".join(re.findall(rf"^{name}[{{ ].*", exported, re.M))
            check(lines or name in NOT_EVERYWHERE and f'"{name}"' in source, f"{alert}: nothing exports {name}")
            for label, values in re.findall(r'(\w+)=~?"([^"]*)"', labels):
                for value in values.split("|") if label not in ("job", "instance") else ():
                    check(f'{label}="{value}"' in lines or name in NOT_EVERYWHERE and f'"{value}"' in source, f"{alert}: {name} has no {label}={value}")


@test
def operations_say_what_to_do_about_each_alert():
    text = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    check_equal(re.findall(r"^\*\*`(Pawl\w+)`\*\*", text, re.M), list(RULES))


class Prometheus(Server):
    def __init__(self):
        super().__init__("prometheus")
        config = yaml.safe_load((ALERTS.parent / "prometheus.yml").read_text(encoding="utf-8"))
        for job, client in zip(config["scrape_configs"], (WORLD.lease, WORLD.gateway)):
            job.update(scrape_interval="200ms", static_configs=[{"targets": [client.url.removeprefix("http://")]}])
        config["rule_files"] = [str(ALERTS)]
        self.write("prometheus.yml", json.dumps(config))
        self.start(f"--config.file={self.folder}/prometheus.yml", f"--storage.tsdb.path={self.folder}/data",
                   f"--web.listen-address=127.0.0.1:{self.ports[0]}")
        self.wait_listening()
        wait_until(self.is_ready, "Prometheus has begun")

    def is_ready(self):
        try:
            return urllib.request.urlopen(f"{self.url}/-/ready").status == 200
        except urllib.error.HTTPError:
            return False

    def ask(self, query):
        """The values, of each series one."""
        with urllib.request.urlopen(f"{self.url}/api/v1/query?query=" + urllib.parse.quote(query)) as page:
            answer = json.load(page)
        check_equal(answer["status"], "success", f"{query}: {answer}")
        return [float(one["value"][1]) for one in answer["data"]["result"]]


# Nothing of these happens here, or nothing of it with a rate.
MAY_BE_EMPTY = {"Time until a waiter is granted", "Refusals and failures"}


@test_in(Prometheus)
def prometheus_knows_what_the_dashboard_asks_for(prometheus):
    token = {"Fencing-Token": GRANT["fencing_token"]}
    wait_until(lambda: prometheus.ask("pawl_ready") == [1, 1], "both are scraped and ready")
    for panel in DASHBOARD["panels"]:
        for target in panel["targets"]:
            query = target["expr"].replace("$__rate_interval", "1m").replace("$instance", ".*")
            check("$" not in query, query)
            if panel["title"] in MAY_BE_EMPTY:
                prometheus.ask(query)
            else:
                wait_until(lambda query=query: prometheus.ask(query), f"{panel['title']}: {query}")
    wait_until(lambda: prometheus.ask("max(pawl_store_leases_held)") == [3], "three are held")
    check_equal(WORLD.gateway("PUT", f"/v1/resources/{NAMES[0]}", token, b"x").status, 201)
    wait_until(lambda: prometheus.ask('pawl_http_requests_total{operation="writeResource",status="2xx"}') == [1], "the write counts")
    check_equal(prometheus.ask("ALERTS"), [])


main(WORLD.close)
