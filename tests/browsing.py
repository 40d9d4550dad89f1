"""A headless Chromium for tests, and what they ask of it."""

import contextlib
import json
import shutil

import pytest


def find_program(*names: str) -> str | None:
    for name in names:
        if path := shutil.which(name):
            return path
    return None


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    "A Chromium with a new profile. Where there is none, the test is skipped."
    chromium = find_program("chromium", "chromium-browser", "google-chrome")
    driver = find_program("chromedriver")
    if not (chromium and driver):
        pytest.skip(
            "no chromium and chromedriver: apt-get install chromium chromium-driver"
        )
    webdriver = pytest.importorskip(
        "selenium.webdriver",
        reason="the browser is driven by selenium: pip install selenium",
    )
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for argument in (
        "headless=new",
        "no-sandbox",
        "disable-gpu",
        "disable-dev-shm-usage",
        "disable-background-networking",
        "disable-component-update",
        "disable-sync",
        "no-first-run",
        "window-size=1400,1000",
        f"user-data-dir={tmp_path_factory.mktemp('profile')}",
    ):
        options.add_argument(f"--{argument}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})

    browser = webdriver.Chrome(options=options, service=Service(driver))
    browser.set_script_timeout(60)
    yield browser
    browser.quit()


def visit(browser, url):
    "Open a page anew, with empty logs, and wait until its formulas are drawn."
    browser.get("about:blank")
    for log in ("browser", "performance"):
        browser.get_log(log)
    browser.get(url)
    browser.execute_async_script("""const done = arguments[0], tries = performance.now() + 20000;
        const needed = document.querySelector('script[src*="tex-svg"]');
        (function wait() {
          if (!needed || performance.now() > tries) return done();
          if (window.MathJax && MathJax.startup && MathJax.startup.promise) return MathJax.startup.promise.then(() => done());
          setTimeout(wait, 50);
        })();""")


@contextlib.contextmanager
def window(browser, width: int, height: int, mobile=False):
    "A window of another size for a while."
    size = dict(width=width, height=height, deviceScaleFactor=1, mobile=mobile)
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        yield
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def phone(browser):
    return window(browser, 390, 840, mobile=True)


@contextlib.contextmanager
def system_theme(browser, theme: str):
    "A system with the theme light or dark for a while."
    feature = dict(name="prefers-color-scheme", value=theme)
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", dict(features=[feature]))
    try:
        yield
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", dict(features=[]))


def wait_for_theme(browser, theme: str):
    "Until the scripts of the widgets have heard of the system's new theme."
    script = "return document.querySelector('[data-page]').dataset.page == arguments[0]"
    wait_for(browser, script, theme)


HOSTS = ["site", "jupyterlab", "vscode", "colab", "another"]


def show_in_host(path, host: str, theme: str):
    "Change a saved page, so that it says its theme as one of these hosts does. Another one only has its colours."
    style = "background: Canvas; color: CanvasText"
    root, body = f'style="color-scheme: {theme}"', f'style="{style}"'
    if host == "site":
        root += f' data-theme="{theme}"'
    elif host == "jupyterlab":
        body += f' data-jp-theme-light="{"false" if theme == "dark" else "true"}"'
    elif host == "vscode":
        body += f' data-vscode-theme-kind="vscode-{theme}"'
    elif host == "colab" and theme == "dark":
        root += ' theme="dark"'

    text = path.read_text(encoding="utf-8").replace("<html ", f"<html {root} ")
    text = text.replace("<body>", f"<body {body}>")
    path.write_text(text, encoding="utf-8")


def switch_theme(browser, theme: str):
    "To light or dark, and wait until the colours have faded over."
    browser.execute_script("document.documentElement.dataset.theme = arguments[0]", theme)
    browser.execute_async_script("setTimeout(arguments[0], 500)")


def requested(browser) -> list[str]:
    "The addresses that the page has asked for."
    found = []
    for entry in browser.get_log("performance"):
        message = json.loads(entry["message"])["message"]
        if message["method"] == "Network.requestWillBeSent":
            found.append(message["params"]["request"]["url"])
    return found


def wait_for(browser, script, *arguments, seconds=20):
    from selenium.webdriver.support.ui import WebDriverWait

    return WebDriverWait(browser, seconds).until(
        lambda b: b.execute_script(script, *arguments)
    )


COLOURS = """const light = css => { const c = document.createElement('canvas').getContext('2d'); c.fillStyle = css; c.fillRect(0, 0, 1, 1);
    const [r, g, b] = [...c.getImageData(0, 0, 1, 1).data].map(v => v / 255).map(v => v <= .04 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
    return .2126 * r + .7152 * g + .0722 * b };
  const root = document.querySelector('.attention-view'), button = getComputedStyle(root.querySelector('button[aria-pressed=true]'));
  let ground = 'Canvas';
  for (let e = root; e; e = e.parentElement) {
    const own = getComputedStyle(e).backgroundColor;
    if (!/, 0\\)$|transparent/.test(own)) { ground = own; break }
  }
  const sample = document.body.appendChild(document.createElement('div'));
  sample.style.background = ground;
  return [getComputedStyle(sample).backgroundColor, getComputedStyle(root).color, button.backgroundColor, button.color].map(light)"""


def assert_readable(browser, dark: bool):
    "An attention view can be read on its ground: the least contrast that WCAG asks of text is 4.5."
    ground, text, hot, on_hot = browser.execute_script(COLOURS)
    assert (ground < 0.1) == dark
    for one, other in ((ground, text), (hot, on_hot), (ground, hot)):
        assert (max(one, other) + 0.05) / (min(one, other) + 0.05) > 4.5
