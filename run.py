#!/usr/bin/env python3
"""Headroom's one entry point: it prepares the project's own .venv, then runs one thing in it.

python3 run.py [app] [streamlit options]   start the calculator
python3 run.py test [pytest arguments]     lint, types and tests; with arguments, pytest alone
python3 run.py bench [arguments]           run the benchmarks

The first run installs the requirements, which takes a minute or two; later runs start at once.
The test command wants a Chromium or Chrome: it looks on PATH, or takes the one that the
environment variable CHROMIUM names, or else tries to install one.
"""

import difflib
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

if sys.version_info < (3, 11):  # noqa: UP036 - the person's Python may well be older than the project's
    sys.exit("Headroom needs Python 3.11 or newer; this is Python %d.%d." % sys.version_info[:2])  # noqa: UP031

ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
REQUIREMENTS = {"app": "requirements.txt", "dev": "requirements-dev.txt"}
PYTHON_VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
MAC_BROWSERS = (
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
)
APT = ("env", "DEBIAN_FRONTEND=noninteractive", "apt-get")
BROWSER_INSTALLS = {  # each package manager's commands; the last one installs
    "apt-get": ((*APT, "update"), (*APT, "install", "-y", "chromium")),
    "dnf": (("dnf", "install", "-y", "chromium"),),
    "pacman": (("pacman", "-S", "--noconfirm", "chromium"),),
    "zypper": (("zypper", "--non-interactive", "install", "chromium"),),
    "apk": (("apk", "add", "chromium"),),
    "brew": (("brew", "install", "--cask", "google-chrome"),),
}

CHECKS = {
    "ruff check": ("ruff", "check", "."),
    "ruff format": ("ruff", "format", "--check", "."),
    "mypy": ("mypy", "app.py", "calculators", "formulas", "hardware_db"),
}
WHOLE_SUITE = {  # a page in a browser wants the machine for itself, the others share its cores
    "tests": ("pytest", "-n", "auto", "-m", "not browser"),
    "browser tests": ("pytest", "-m", "browser"),
}


def say(message: str) -> None:
    """Print one line of this script's own, in order with what the programs it starts print."""
    print(f"run.py: {message}", flush=True)


def quietly(*command: str) -> tuple[bool, str]:
    """Run a command without showing it; return whether it succeeded and its last lines."""
    done = subprocess.run(  # noqa: S603 - fixed commands, no shell
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )
    return done.returncode == 0, "\n".join(done.stdout.strip().splitlines()[-8:])


# --- the environment ---------------------------------------------------------------------------


def venv_python() -> Path:
    """Return where the environment's interpreter is, on this kind of system."""
    return VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def stamp_file(kind: str) -> Path:
    """Return the file that records what the last successful install of `kind` was made from."""
    return VENV / f"headroom-{kind}.stamp"


def requirement_files(name: str) -> list[Path]:
    """Return the requirement file and those that it includes with `-r`."""
    files = [ROOT / name]
    for line in files[0].read_text(encoding="utf-8").splitlines():
        if line.startswith("-r "):
            files += requirement_files(line[3:].strip())
    return files


def wanted_stamp(kind: str) -> str:
    """Return the hash of the Python version and of every requirement file behind `kind`."""
    digest = hashlib.sha256(PYTHON_VERSION.encode())
    for path in requirement_files(REQUIREMENTS[kind]):
        digest.update(b"\0" + path.read_bytes())
    return digest.hexdigest()


def is_installed(kind: str) -> bool:
    """Tell whether the last successful install of `kind` is the one wanted now."""
    stamp = stamp_file(kind)
    return stamp.is_file() and stamp.read_text(encoding="utf-8") == wanted_stamp(kind)


def is_sound() -> bool:
    """Tell whether .venv is whole: a finished install, this version of Python, its packages present."""
    if not any(stamp_file(kind).is_file() for kind in REQUIREMENTS) or not venv_python().exists():
        return False
    probe = "import sys; from importlib.util import find_spec; "
    probe += "print('%d.%d' % sys.version_info[:2], bool(find_spec('streamlit')))"
    return quietly(str(venv_python()), "-c", probe) == (True, f"{PYTHON_VERSION} True")


def needs_uv() -> bool:
    """Tell whether this Python cannot make environments, so that uv must; exit if there is no uv."""
    if importlib.util.find_spec("venv") and importlib.util.find_spec("ensurepip"):
        return False
    if shutil.which("uv"):
        return True
    sys.exit(
        f"run.py: this Python {PYTHON_VERSION} cannot make environments: it lacks venv or ensurepip. "
        f"On Debian or Ubuntu: apt-get install python{PYTHON_VERSION}-venv. Elsewhere: install uv."
    )


def create_venv(uv: bool) -> None:
    """Make .venv anew, removing what is there."""
    if VENV.exists():
        say("rebuilding .venv: it is unfinished, damaged or of another Python")
        shutil.rmtree(VENV)
    base = getattr(sys, "_base_executable", sys.executable)  # not one inside the .venv just removed
    maker = ("uv", "venv", "--seed", "--python", base) if uv else (base, "-m", "venv")
    made, output = quietly(*maker, str(VENV))
    if not made:
        sys.exit(f"{output}\nrun.py: .venv could not be made; the lines above say why.")


def install(kind: str, uv: bool) -> None:
    """Install the requirements of `kind`, then write its stamp; a failed install leaves no stamp."""
    for each in REQUIREMENTS:
        stamp_file(each).unlink(missing_ok=True)
    name = REQUIREMENTS[kind]
    say(f"installing {name} into .venv; this can take a minute or two")
    python = str(venv_python())
    installer = (
        ("uv", "pip", "install", "--compile-bytecode", "--python", python) if uv else (python, "-m", "pip", "install")
    )
    installed, output = quietly(*installer, "-r", str(ROOT / name))
    if not installed:
        sys.exit(
            f"{output}\nrun.py: {name} could not be installed; "
            "check the lines above and the network, then run the same command again."
        )
    for satisfied in ("app", "dev") if kind == "dev" else ("app",):
        stamp_file(satisfied).write_text(wanted_stamp(satisfied), encoding="utf-8")


def prepare(kind: str) -> None:
    """Make .venv satisfy the requirements of `kind`, doing nothing where it does already."""
    sound = is_sound()
    if sound and is_installed(kind):
        return
    uv = needs_uv()
    if not sound:
        create_venv(uv)
    install(kind, uv)


# --- the browser -------------------------------------------------------------------------------


def find_browser() -> str | None:
    """Return the path of a Chromium or Chrome: the one CHROMIUM names, or the first one found."""
    named = os.environ.get("CHROMIUM")
    if named:
        found = shutil.which(named)
        if found:
            return found
        say(f"CHROMIUM names {named}, which is no program here; looking elsewhere")
    return next(filter(None, map(shutil.which, (*BROWSERS, *MAC_BROWSERS))), None)


def admin_prefix() -> tuple[str, ...] | None:
    """Return what to put before a command to run it as root without a password, or None."""
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        return ()
    return ("sudo", "-n") if shutil.which("sudo") and quietly("sudo", "-n", "true")[0] else None


def ensure_browser() -> str | None:
    """Return a browser's path, installing one where that is possible; say so where there is none."""
    found = find_browser()
    if found:
        return found
    manager = next(filter(shutil.which, BROWSER_INSTALLS), None)
    prefix = () if manager == "brew" else admin_prefix()
    if manager and prefix is not None:
        say(f"no Chromium or Chrome found; installing one with {manager}")
        for command in BROWSER_INSTALLS[manager]:
            succeeded, output = quietly(*prefix, *command)
            if not succeeded:
                print(output, flush=True)
        found = find_browser()
        if found:
            return found
    hint = " ".join(BROWSER_INSTALLS[manager][-1]) if manager else "from its website"
    say(
        "no Chromium or Chrome here: the browser tests are SKIPPED. "
        f"To run them, install one ({hint}) or set CHROMIUM to its path."
    )
    return None


# --- the commands ------------------------------------------------------------------------------


def become(*arguments: str) -> int:
    """Replace this process by the environment's Python; on Windows, which cannot, wait for it."""
    command = [str(venv_python()), *arguments]
    if os.name != "nt":
        os.execv(command[0], command)  # noqa: S606 - the user's own arguments, no shell
    return subprocess.call(command)  # noqa: S603 - the same


def app(arguments: list[str]) -> int:
    """Start the calculator."""
    prepare("app")
    return become("-m", "streamlit", "run", "app.py", *arguments)


def bench(arguments: list[str]) -> int:
    """Run the benchmarks."""
    prepare("dev")
    return become("-m", "benchmarks", *arguments)


def test(arguments: list[str]) -> int:
    """Run lint, types and tests, each of them whatever became of the others; with arguments, pytest alone."""
    prepare("dev")
    os.environ["CHROMIUM"] = ensure_browser() or ""
    steps = {"pytest": ("pytest", *arguments)} if arguments else CHECKS | WHOLE_SUITE
    statuses = {}
    for name, command in steps.items():
        say(" ".join(command))
        statuses[name] = run_module(*command)
    failed = [name for name, status in statuses.items() if status]
    if failed:
        say(f"failed: {', '.join(failed)}")
    return next(filter(None, reversed(statuses.values())), 0)


def run_module(*command: str) -> int:
    """Run a module of the environment in plain sight and return its exit status."""
    return subprocess.call([str(venv_python()), "-m", *command])  # noqa: S603 - the user's own arguments


COMMANDS = {"app": app, "test": test, "bench": bench}


def main(arguments: list[str]) -> int:
    """Do what the command line asks and return the exit status."""
    name, *rest = arguments or ["app"]
    if name in ("-h", "--help"):
        print(__doc__.strip())
        return 0
    if name not in COMMANDS:
        near = difflib.get_close_matches(name, COMMANDS, n=1, cutoff=0.4)
        meant = f"; did you mean {near[0]}?" if near else ""
        print(f"run.py: unknown command {name!r}, use one of {', '.join(COMMANDS)}{meant}", file=sys.stderr)
        return 2
    os.chdir(ROOT)
    os.environ.setdefault(
        "OPENBLAS_NUM_THREADS", "1"
    )  # as in the package of calculators, and for tests of formulas alone
    return COMMANDS[name](rest)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
    except OSError as error:
        sys.exit(f"run.py: {error}")
