"""report.py - what the benchmark needs before it begins, and how its figures are told."""

import json
import os
import shutil
import statistics
import subprocess

LOAD_SOURCES = ["load", "engine", "job", "job_peers", "request", "protocol", "wire", "idle", "histogram"]
LINE_SOURCES = ["line", "request", "protocol", "wire", "histogram"]
QUIET_PERCENT = 5
SCRIPTS = ["lease/scripts/acquire.lua", "lease/scripts/release.lua", "gateway/scripts/write.lua"]


def newest(paths):
    return max(os.path.getmtime(path) for path in paths)


def compile_c(root, output, sources, libraries):
    inputs = [os.path.join(root, "tests/bench", f"{name}.c") for name in sources]
    headers = [os.path.join(root, "tests/bench", name) for name in os.listdir(os.path.join(root, "tests/bench"))
               if name.endswith(".h")]
    archives = [path for path in libraries if path.endswith(".a")]
    if os.path.exists(output) and os.path.getmtime(output) > newest(inputs + headers + archives):
        return
    # libc stands before the archives: the recv() in libshared.a is for libmicrohttpd
    subprocess.run([os.environ.get("CC", "cc"), "-std=c11", "-D_GNU_SOURCE", "-O2", "-Wall", "-Wextra", f"-I{root}",
                    "-o", output, *inputs, "-lc", *libraries], check=True)


def assemble(root, script):
    """The script as the services embed it, byte for byte, so that it has their SHA-1."""
    return subprocess.run([os.path.join(root, "deploy/build/scripts.py"), "assemble", script], check=True,
                          capture_output=True, text=True, cwd=root).stdout


def build(root, baseline, made, bench):
    """The load generator, the idle upstream, and the scripts: those of the baseline, and one that people write."""
    os.makedirs(os.path.join(bench, "scripts"), exist_ok=True)
    sodium = subprocess.run(["pkg-config", "--libs", "libsodium", "gnutls"], check=True, capture_output=True,
                            text=True).stdout.split()
    compile_c(root, os.path.join(bench, "load"), LOAD_SOURCES, [os.path.join(made, "libshared.a"), *sodium])
    compile_c(root, os.path.join(bench, "line"), LINE_SOURCES, [os.path.join(made, "libshared.a"), *sodium])
    compile_c(root, os.path.join(bench, "idle_upstream"), ["idle_upstream"], [])
    for script in SCRIPTS:
        with open(os.path.join(bench, "scripts", os.path.basename(script)), "w", encoding="utf-8") as file:
            file.write(assemble(baseline, script))
    shutil.copy(os.path.join(root, "tests/bench/naive_release.lua"), os.path.join(bench, "scripts"))


def median_of(runs, what):
    return statistics.median(what(run) for run in runs)


def summary(runs):
    """The medians of a side's runs."""
    told = {key: median_of(runs, lambda run, key=key: run[key])
            for key in ("tasks_per_s", "requests_per_cpu_s", "others_percent", "loadavg")}
    for key in ("request_us", "task_us"):
        told[key] = {share: median_of(runs, lambda run, key=key, share=share: run[key][share])
                     for share in ("p50", "p99", "p999", "max")}
    told["cpu_s"] = {name: median_of(runs, lambda run, name=name: run["cpu_s"][name]) for name in runs[0]["cpu_s"]}
    told["cpu_us_per_request"] = {
        name: round(median_of(runs, lambda run, name=name: 1e6 * run["cpu_s"][name] / run["requests_all"]), 2)
        for name in runs[0]["cpu_s"]}
    told["cpu_us_per_task"] = {who: round(median_of(runs, lambda run, who=who: 1e6 * sum(
        s for name, s in run["cpu_s"].items() if (name == "load") == (who == "load")) / run["tasks_all"]), 1)
        for who in ("servers", "load")}
    return told


class Report:
    """Gathers the figures; writes them; shows them."""

    def __init__(self, machine):
        self.machine = machine
        self.parts, self.figures, self.failures, self.restarts = [], [], [], []

    def part(self, part):
        part["median"] = {side: summary(runs) for side, runs in part["runs"].items()}
        self.parts.append(part)

    def recoveries(self, kept):
        self.restarts = kept

    def figure(self, name, value, word=None, target=None):
        met = None
        if word and target is not None:
            met = value >= target if word == "at least" else value <= target
        self.figures.append({"name": name, "value": round(value, 3), "target": target,
                             "target_is": word if target is not None else None, "met": met})

    def broken(self, name, why):
        self.failures.append({"part": name, "why": why})

    def write(self, path):
        self.machine["loadavg_after"] = os.getloadavg()
        told = {"machine": self.machine, "figures": self.figures, "failures": self.failures, "parts": self.parts,
                "recoveries": self.restarts}
        with open(path, "w", encoding="utf-8") as file:
            json.dump(told, file, indent=1)
            file.write("\n")
        self.path = path

    def show(self):
        m = self.machine
        print(f"\n{m['cpus']} CPUs, {m['model']}, Linux {m['kernel']}, load average "
              f"{m['loadavg_before'][0]:.2f} before, {m['loadavg_after'][0]:.2f} after\n")
        for part in self.parts:
            show_part(part)
        for one in self.restarts:
            print(f"restart: {one['load_ms']:.0f} ms to load, then {one['grant_ms']:.0f} ms to the first grant, of which "
                  f"{one['admit_ms']:.1f} ms the admission script, {one['scripts_ms']:.1f} ms all scripts; "
                  f"all of the machine used to {one['machine_percent']} %")
        for figure in self.figures:
            told = "" if figure["met"] is None else "met" if figure["met"] else "NOT MET"
            target = f"{figure['target_is']} {figure['target']:,}" if figure["target"] is not None else ""
            print(f"{figure['name']:<76} {figure['value']:>10,.2f}  {target:<15} {told}")
        busiest = max((told["others_percent"] for part in self.parts for told in part["median"].values()), default=0)
        if busiest > QUIET_PERCENT:
            print(f"\nThe machine was not quiet: others used up to {busiest:.0f} % of it. Do not believe these figures.")
        for failure in self.failures:
            print(f"\n{failure['part']} could not be measured: {failure['why']}")
        print(f"\n{self.path}")


def show_part(part):
    tasks = part["title"].startswith("acquire")
    print(f"{part['title']:<38} {'rate/s':>7}  {'p50':>6} {'p99':>6} us of a request"
          f"{'    p50    p99   p999 us of the pair' if tasks else ''};  CPU us of {'the pair' if tasks else 'it'}: servers, load")
    for side, told in part["median"].items():
        request, task = told["request_us"], told["task_us"]
        pair = f"          {task['p50']:>6,.0f} {task['p99']:>6,.0f} {task['p999']:>6,.0f}" if tasks else ""
        cpu = told["cpu_us_per_task"]
        print(f"  {side:<36} {told['tasks_per_s']:>7,.0f}  {request['p50']:>6,.0f} {request['p99']:>6,.0f} {pair:<30}"
              f"{cpu['servers']:>32,.1f} {cpu['load']:>6,.1f}")
    print("  requests per CPU second; CPU seconds (and us for each request) of each process; what others used")
    for side, told in part["median"].items():
        cpu = ", ".join(f"{name} {s:.2f} ({told['cpu_us_per_request'][name]:.1f})" for name, s in told["cpu_s"].items())
        print(f"  {side:<26} {told['requests_per_cpu_s']:>7,.0f};  {cpu};  {told['others_percent']:.1f} %")
    print()
