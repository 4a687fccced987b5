#!/usr/bin/env python3
"""Tests the page of `fomoe explore` in a real browser (Debian: chromium, chromium-driver): moves its controls, reads its
numbers, and compares them with those of the command line.

    explore_test.py --fomoe build/release/bin/fomoe [--pictures FOLDER]

With --pictures, it keeps pictures at the widths 1280 and 390, light and dark.
"""
import argparse
import json
import os
import pathlib
import re
import resource
import subprocess
import tempfile
import time
import urllib.request

from webdriver import Browser

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCENARIOS = ROOT / "experiments/scenarios"


def simulated(fomoe, command):
    """The answer of the command that the page offers."""
    words = command.split(" ", 1)
    assert words[0] == "fomoe", command
    done = subprocess.run(f"'{fomoe}' {words[1]} --output -", shell=True, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def first_lines(fomoe, command):
    done = subprocess.run(f"'{fomoe}' {command.split(' ', 1)[1]}", shell=True, capture_output=True, text=True, cwd=ROOT)
    return done.stdout


def children_cpu_s():
    """Processor time of all child processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class Explored:
    """The page of one `fomoe explore` in the browser."""

    def __init__(self, fomoe, browser, scenario, *options):
        self.fomoe, self.browser = fomoe, browser
        self.server = subprocess.Popen([fomoe, "explore", str(scenario), "--no-browser", *options], stdout=subprocess.PIPE,
                                       stderr=subprocess.DEVNULL, text=True)
        self.address = self.server.stdout.readline().strip()
        browser.open("about:blank")
        browser.open(self.address)
        self.wait()

    def wait(self):
        """Waits for the simulation of the present settings."""
        self.browser.until("the answer", lambda: self.browser.run("return document.body.dataset.state") == "settled")
        assert "simulated." in self.browser.text("#status"), self.browser.text("#status")

    def field(self, key):
        return "#" + self.browser.run("return fields.find((field) => field.control.key === arguments[0]).id", key)

    def slide(self, key, share):
        """Moves a slider, as a pointer does."""
        self.browser.run("""const {slider} = fields.find((field) => field.control.key === arguments[0]);
            slider.value = Math.round(slider.max * arguments[1]); slider.dispatchEvent(new Event("input"));""", key, share)

    def choose(self, key, value):
        self.browser.run("""const {input} = fields.find((field) => field.control.key === arguments[0]);
            input.value = arguments[1]; input.dispatchEvent(new Event("change"));""", key, value)

    def check_numbers(self):
        """The numbers on the page are those of the command that it offers."""
        self.wait()
        command = self.browser.text("#command")
        answer, printed = simulated(self.fomoe, command), first_lines(self.fomoe, command)
        report = self.browser.run("return answers.simulate.report")
        assert report["wall_clock_s"] == answer["wall_clock_s"], (command, report["wall_clock_s"], answer["wall_clock_s"])
        assert report["compute_utilization"] == answer["compute_utilization"], command
        # The texts are those that the command prints.
        time_text = self.browser.run("return document.querySelector('#figure-time dd').firstChild.textContent")
        assert re.search(r"^wall clock +" + re.escape(time_text) + "  ", printed, re.MULTILINE), (time_text, printed)
        share = self.browser.run("return document.querySelector('#figure-utilization dd').firstChild.textContent")
        assert re.search(r"^compute utilisation +" + re.escape(share) + "$", printed, re.MULTILINE), (share, printed)
        if answer.get("cost"):
            cost = self.browser.run("return document.querySelector('#figure-cost dd').firstChild.textContent")
            assert re.search(r"^cost +" + re.escape(cost), printed, re.MULTILINE), (cost, printed)
        return answer

    def cpu_s(self):
        fields = pathlib.Path(f"/proc/{self.server.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def close(self):
        self.server.terminate()
        assert self.server.wait(10) == 0
        messages = self.browser.messages()
        assert not messages, messages


def test_moves(fomoe, browser):
    """Sliders, choices and fields give the numbers of the command line; mistakes appear at their field."""
    page = Explored(fomoe, browser, SCENARIOS / "two-sites.toml")
    first = page.check_numbers()
    page.slide("platform.bandwidth", 0.2)
    slower = page.check_numbers()
    assert slower["wall_clock_s"] > first["wall_clock_s"]
    page.slide("strategy.local_steps", 0.9)
    assert page.check_numbers()["wall_clock_s"] < slower["wall_clock_s"]
    for method in ("ddp", "streaming_diloco", "diloco"):
        page.choose("strategy.method", method)
        assert page.check_numbers()["scenario"]["strategy"]["method"] == method
    page.choose("strategy.payload_dtype", "int4")
    assert page.check_numbers()["scenario"]["strategy"]["payload_dtype"] == "int4"
    page.slide("platform.sites", 0.2)
    page.slide("platform.latency", 0.9)
    page.slide("compute.step_time", 0.3)
    page.check_numbers()
    # The keyboard moves a slider, too.
    before = browser.run("return chosen['platform.bandwidth']")
    browser.run("fields.find((field) => field.control.key === 'platform.bandwidth').slider.focus()")
    browser.ask("POST", "/actions", {"actions": [{"type": "key", "id": "keys", "actions": [
        {"type": "keyDown", "value": "\ue014"}, {"type": "keyUp", "value": "\ue014"}]}]})
    assert browser.run("return chosen['platform.bandwidth']") != before
    page.check_numbers()

    steps = page.field("strategy.local_steps")
    browser.keys(steps, "0.5")
    browser.until("the mistake", lambda: browser.text(steps + "-error").startswith("got 0.5; expected a whole number of at least 1"))
    assert browser.run("return document.querySelector(arguments[0]).getAttribute('aria-invalid')", steps) == "true"
    assert steps[1:] + "-error" in browser.run("return document.querySelector(arguments[0]).getAttribute('aria-describedby')", steps)
    browser.keys(steps, "96")
    browser.until("the mistake's end", lambda: not browser.text(steps + "-error"))
    assert page.check_numbers()["scenario"]["strategy"]["local_steps"] == 96
    browser.keys("#other", "network_model.host=linux")
    assert page.check_numbers()["scenario"]["network_model"]["segment_bytes"] > 0
    # A reload keeps the settings.
    browser.open(browser.ask("GET", "/url"))
    page.check_numbers()
    page.close()


def test_speed(fomoe, browser):
    """A move takes less than half of the processor time in which the program answers the same question; a move starts one simulation."""
    page = Explored(fomoe, browser, SCENARIOS / "unequal-sites.toml")  # the slowest of the examples
    posted, before = 100, page.cpu_s()
    for i in range(posted):
        body = json.dumps({"settings": {"strategy.local_steps": str(8 + i)}}).encode()
        answer = json.load(urllib.request.urlopen(urllib.request.Request(page.address + "formula", data=body)))
        assert answer["local_steps"] == 8 + i
    move_s = (page.cpu_s() - before) / posted
    began = children_cpu_s()
    runs = 20
    for i in range(runs):
        subprocess.run([fomoe, "simulate", SCENARIOS / "unequal-sites.toml", "--engine", "closed-form", "--output", "-"],
                       check=True, stdout=subprocess.DEVNULL)
    program_s = (children_cpu_s() - began) / runs
    print(f"processor time: {1000 * move_s:.0f} ms for a move, {1000 * program_s:.0f} ms for a run of the program")
    assert move_s < program_s / 2
    moves = browser.run("return moves")
    page.slide("strategy.local_steps", 0.4)
    began = time.monotonic()
    page.wait()
    seconds = time.monotonic() - began
    print(f"the simulation came {seconds:.2f} s after the move")
    assert browser.run("return moves") == moves + 1
    page.close()


def test_pins_and_copies(fomoe, browser, downloads):
    page = Explored(fomoe, browser, SCENARIOS / "four-regions.toml")
    page.check_numbers()
    browser.run("document.querySelector('#pin').click()")
    page.choose("strategy.method", "fomoe")
    page.slide("strategy.expert_overlap", 0)
    pinned = page.check_numbers()
    browser.run("document.querySelector('#pin').click()")
    page.slide("platform.rate_factor", 0.25)
    page.check_numbers()
    rows = browser.run("return [...document.querySelectorAll('#pins tbody tr')].map((row) => row.innerText)")
    assert len(rows) == 3 and "A: diloco" in rows[1] and "B: fomoe" in rows[2], rows
    browser.run("[...document.querySelectorAll('#pins button')].find((one) => one.ariaLabel === 'Restore B').click()")
    assert page.check_numbers()["wall_clock_s"] == pinned["wall_clock_s"]

    # The copied scenario gives the same answer.
    toml = browser.ask("POST", "/execute/async", {"script": "source.toml(allChosen()).then((answer) => arguments[0](answer.toml))", "args": []})
    copied = SCENARIOS / "explore-test-copy.toml"
    try:
        copied.write_text(toml)
        again = simulated(fomoe, f"fomoe simulate '{copied}'")
    finally:
        copied.unlink()
    assert again["wall_clock_s"] == pinned["wall_clock_s"] and again["cost"] == pinned["cost"]

    browser.run("document.querySelector('#save-report').click()")
    report = downloads / "report.html"
    browser.until("the download", report.exists)
    browser.until("the report", lambda: "Comparison" in report.read_text())
    assert "A: diloco" in report.read_text()
    page.close()


def test_export(fomoe, browser, folder):
    """The exported page needs no server, and has the numbers of the closed form."""
    page = folder / "page.html"
    subprocess.run([fomoe, "explore", str(SCENARIOS / "four-regions.toml"), "--export", str(page)], check=True, stderr=subprocess.DEVNULL)
    browser.open(page.as_uri())
    for method, steps, rate, latency in (("diloco", 0, 0, 0), ("fomoe", 8, 5, 2), ("ddp", 3, 12, 4)):
        browser.run("""const [method, ...steps] = arguments;
            const find = (key) => fields.find((field) => field.control.key === key);
            find("strategy.method").input.value = method; find("strategy.method").input.dispatchEvent(new Event("change"));
            ["strategy.local_steps", "platform.rate_factor", "network_model.latency_factor"].forEach((key, i) => {
              find(key).slider.value = steps[i]; find(key).slider.dispatchEvent(new Event("input")); });""", method, steps, rate, latency)
        browser.until("the answer", lambda: browser.run("return document.body.dataset.state") == "settled")
        command = browser.text("#command").split(" ", 1)[1]
        done = subprocess.run(f"'{fomoe}' {command} --engine closed-form --output -", shell=True, capture_output=True, text=True, check=True, cwd=ROOT)
        answer, report = json.loads(done.stdout), browser.run("return answers.formula.report")
        for key in ("wall_clock_s", "compute_utilization", "bytes_sent_per_site_per_round"):
            assert abs(report[key] / answer[key] - 1) < 1e-5, (command, key, report[key], answer[key])
        assert abs(report["cost"]["cost_total"] / answer["cost"]["cost_total"] - 1) < 1e-5, command
    assert "exported" in browser.text("#limits")
    assert not browser.messages()
    check_comparisons(fomoe, browser, page)
    return page


def check_comparisons(fomoe, browser, page):
    """The exported page compares the methods in the settings in which the program compares them."""
    settings = [{}, {"strategy.method": "fomoe"}, {"strategy.method": "fomoe", "strategy.expert_overlap": "2"},
                {"strategy.method": "ddp", "strategy.expert_overlap": "3"}, {"strategy.method": "streaming_diloco", "strategy.local_steps": "4"}]
    comparisons = "return Promise.all(arguments[0].map((chosen) => source.compare(chosen)))"
    exported = browser.run(comparisons, settings)
    # Both say the rates of the links at the factor that is set.
    factor, rates = browser.run("""const {hint, output} = fields.find((field) => field.control.key === "platform.rate_factor");
        return [output.textContent, hint.textContent];""")
    assert float(factor) != 1 and "Gb/s" in rates, (factor, rates)
    live = Explored(fomoe, browser, SCENARIOS / "four-regions.toml")
    served = [browser.run("return source.compare(arguments[0])", chosen) for chosen in settings]  # one request at a time
    for chosen, mine, theirs in zip(settings, exported, served):
        labels, expected = ([one["label"] for one in answer["methods"]] for answer in (mine, theirs))
        assert labels == expected, chosen
        mine, theirs = ({point["label"]: point for point in answer["points"]} for answer in (mine, theirs))
        missing = [label for label in mine if label not in theirs]
        assert mine and not missing, (chosen, missing)
        for label, point in mine.items():
            for key in ("wall_clock_s", "cost", "utilization"):
                assert abs(point[key] / theirs[label][key] - 1) < 1e-5, (chosen, label, key)
    browser.keys(live.field("platform.rate_factor"), factor)
    live.wait()
    shown = browser.text(live.field("platform.rate_factor") + "-hint")
    assert shown.split(", now ")[1] == rates.split(", now ")[1], (factor, shown, rates)
    live.close()


def test_opened(fomoe, browser, folder):
    """Without --no-browser, the program opens an address that leads to the page once."""
    opener = folder / "xdg-open"
    opener.write_text(f'#!/bin/sh\necho "$1" >{folder}/opened.part && mv {folder}/opened.part {folder}/opened\n')
    opener.chmod(0o755)
    server = subprocess.Popen([fomoe, "explore", str(SCENARIOS / "two-sites.toml")], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              text=True, env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"})
    address = server.stdout.readline().strip()
    browser.until("the opened browser", (folder / "opened").exists)
    opened = (folder / "opened").read_text().strip()
    assert address.split("/")[3] not in opened
    browser.open(opened)
    assert browser.ask("GET", "/url").split("#")[0] == address
    browser.open("about:blank")
    browser.open(opened)
    assert "refused" in browser.text("body")
    server.terminate()
    assert server.wait(10) == 0
    browser.messages()


def test_mistakes(fomoe, browser, pictures):
    """A picture of a field with a mistake, and of a setting that does not fit into memory."""
    page = Explored(fomoe, browser, SCENARIOS / "four-regions.toml")
    for key, text in (("compute.gpus_per_site", "3"), ("platform.rate_factor", "fast")):
        browser.keys(page.field(key), text)
        message = browser.until("the mistake", lambda field=key: browser.text(page.field(field) + "-error"))
        assert message.startswith("got "), message
    assert "not possible" in browser.text("#status")
    if pictures:
        browser.picture(pictures / "mistake.png")
    browser.run("document.querySelector('#reset').click()")
    page.check_numbers()
    page.choose("strategy.method", "ddp")
    browser.keys("#other", "compute.gpu_memory=16GB")
    page.wait()
    assert browser.text("#memory").startswith("This scenario cannot run as configured"), browser.text("#memory")
    browser.keys("#other", "strategy.nothing=1")
    browser.until("the mistake", lambda: browser.text("#other-error").startswith("strategy.nothing: "))
    # Without the server, the page says what to do.
    page.server.terminate()
    page.server.wait(10)
    page.slide("strategy.local_steps", 0.5)
    browser.until("the advice", lambda: "Start it again" in browser.text("#general-error"))
    browser.open("about:blank")
    browser.messages()


def test_layout(fomoe, browser, pictures, exported):
    """Nothing is wider than the window, and every control has a name."""
    page = Explored(fomoe, browser, SCENARIOS / "four-regions.toml")
    for width, height in ((1280, 900), (390, 844)):
        for scheme in ("light", "dark"):
            for name, address in (("explore", page.address), ("exported", exported.as_uri())):
                browser.size(width, height, scheme)
                browser.open("about:blank")
                browser.open(address)
                browser.until("the answer", lambda: browser.run("return document.body.dataset.state") == "settled")
                if name == "explore":
                    browser.run("document.querySelector('#pin').click()")
                time.sleep(0.3)
                assert browser.run("return document.documentElement.scrollWidth") <= width, (name, width)
                empty = browser.run("""return [...document.querySelectorAll("canvas")].filter((canvas) => canvas.offsetParent).filter((canvas) => {
                    const {data} = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
                    return !data.some((value) => value > 0); }).map((canvas) => canvas.id)""")
                assert not empty, empty
                if pictures:
                    browser.picture(pictures / f"{name}-{width}-{scheme}.png")
                    browser.picture(pictures / f"{name}-{width}-{scheme}-top.png", whole=False)
    # For paper, charts are drawn anew, because printing does not wait until they have adapted to their boxes.
    browser.size(1280, 900)
    time.sleep(0.5)  # until the page has taken the light colours
    browser.run("window.before = drawnCharts.curve")
    browser.devtools("Emulation.setEmulatedMedia", media="print", features=[])
    browser.until("the charts for paper", lambda: browser.run("return drawnCharts.curve !== window.before"), 5)
    assert browser.run("return document.querySelector('#pin').offsetParent === null"), "there are buttons on paper"
    browser.devtools("Emulation.setEmulatedMedia", media="", features=[])
    nameless = browser.devtools("Accessibility.getFullAXTree")["nodes"]
    nameless = [node["role"]["value"] for node in nameless if not node.get("ignored") and node["role"]["value"] in
                ("slider", "textbox", "combobox", "button", "checkbox") and not node.get("name", {}).get("value")]
    assert not nameless, nameless
    page.close()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fomoe", required=True)
    parser.add_argument("--pictures", type=pathlib.Path)
    parser.add_argument("-k", default="", help="run only the tests whose name contains this")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        if asked.pictures:
            asked.pictures.mkdir(parents=True, exist_ok=True)
        browser = Browser(folder)
        exported = None
        try:
            for test in (test_opened, test_moves, test_mistakes, test_speed, test_pins_and_copies, test_export, test_layout):
                if asked.k not in test.__name__ and not (asked.k in "layout" and test is test_export):
                    continue
                browser.size(1280, 900)
                more = {test_layout: [asked.pictures, exported], test_mistakes: [asked.pictures]}
                in_folder = [folder] if test in (test_opened, test_pins_and_copies, test_export) else []
                exported = test(asked.fomoe, browser, *more.get(test, in_folder)) or exported
                print(f"{test.__name__}: passed", flush=True)
        finally:
            browser.close()


if __name__ == "__main__":
    main()
