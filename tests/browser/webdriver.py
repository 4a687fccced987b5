"""A browser for tests: Chromium, driven by the WebDriver protocol (Debian: chromium, chromium-driver)."""
import base64
import json
import re
import subprocess
import time
import urllib.error
import urllib.request


class Browser:
    """A session of Chromium without a window, which saves downloads in the folder `downloads`."""

    def __init__(self, downloads):
        self.driver = subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE, text=True)
        for line in self.driver.stdout:
            found = re.search(r"started successfully on port (\d+)", line)
            if found:
                break
        self.base = f"http://127.0.0.1:{found[1]}"
        options = {"args": ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"],
                   "prefs": {"download.default_directory": str(downloads)}}
        wanted = {"capabilities": {"alwaysMatch": {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}}}
        self.base += "/session/" + self.ask("POST", "/session", wanted)["sessionId"]

    def ask(self, method, path, body=None):
        data = None if method == "GET" else json.dumps(body or {}).encode()
        request = urllib.request.Request(self.base + path, data=data, method=method, headers={"Content-Type": "application/json"})
        try:
            return json.load(urllib.request.urlopen(request, timeout=120))["value"]
        except urllib.error.HTTPError as error:
            raise AssertionError(error.read().decode()[:2000]) from None

    def run(self, script, *arguments):
        return self.ask("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def devtools(self, command, **parameters):
        return self.ask("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def open(self, address):
        self.ask("POST", "/url", {"url": address})

    def size(self, width, height, scheme="light"):
        self.devtools("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 500)
        self.devtools("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def text(self, selector):
        return self.run("return document.querySelector(arguments[0])?.innerText ?? ''", selector)

    def until(self, what, condition, seconds=60):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            value = condition()
            if value:
                return value
            time.sleep(0.05)
        raise AssertionError(f"{what} did not happen within {seconds} s; status: {self.text('#status')}; "
                             f"errors: {self.run('return [...document.querySelectorAll(`.error:not([hidden])`)].map((e) => e.innerText)')}")

    def keys(self, selector, text):
        """Types into the element that the selector finds, after selecting what is in it."""
        self.run("const e = document.querySelector(arguments[0]); e.focus(); e.select?.()", selector)
        self.ask("POST", "/actions", {"actions": [{"type": "key", "id": "keys", "actions": [
            step for character in text for step in ({"type": "keyDown", "value": character}, {"type": "keyUp", "value": character})]}]})

    def messages(self):
        """What went wrong, except the answers to settings that are not possible, which the page explains."""
        return [entry["message"] for entry in self.ask("POST", "/se/log", {"type": "browser"})
                if entry["level"] in ("SEVERE", "WARNING") and "favicon" not in entry["message"] and "status of 422" not in entry["message"]]

    def picture(self, path, whole=True):
        metrics = self.devtools("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": metrics["width"], "height": metrics["height"], "scale": 1}
        shot = self.devtools("Page.captureScreenshot", format="png", captureBeyondViewport=whole, **({"clip": clip} if whole else {}))
        path.write_bytes(base64.b64decode(shot["data"]))

    def close(self):
        self.ask("DELETE", "")
        self.driver.terminate()
        self.driver.wait()
