"""The entry point, run.py: its decisions, with nothing installed and no network."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import run

pytestmark = pytest.mark.skipif(os.name == "nt", reason="the stand-in programs are shell scripts")
SCRIPT = Path(run.__file__)


def program(path: Path, body: str = "exit 0") -> Path:
    """Put an executable shell script at `path`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project folder of its own: requirement files, no .venv."""
    root = tmp_path / "project"
    root.mkdir()
    (root / "requirements.txt").write_text("streamlit\n", encoding="utf-8")
    (root / "requirements-export.txt").write_text("kaleido\n", encoding="utf-8")
    (root / "requirements-dev.txt").write_text(
        "# dev\n-r requirements.txt\n-r requirements-export.txt\npytest\n", encoding="utf-8"
    )
    monkeypatch.setattr(run, "ROOT", root)
    monkeypatch.setattr(run, "VENV", root / ".venv")
    return root


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder on PATH, empty; no browser is named or found elsewhere."""
    folder = tmp_path / "path"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.delenv("CHROMIUM", raising=False)
    monkeypatch.setattr(run, "MAC_BROWSERS", ())
    return folder


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """What run.py would have run quietly; each command succeeds, the `.venv` is made, the probe passes."""
    ran: list[tuple[str, ...]] = []

    def record(*command: str) -> tuple[bool, str]:
        ran.append(command)
        if "venv" in command:
            program(run.venv_python())
        return True, f"{run.PYTHON_VERSION} True" if "-c" in command else ""

    monkeypatch.setattr(run, "quietly", record)
    return ran


def installs(ran: list[tuple[str, ...]]) -> list[str]:
    return ["create" if "venv" in each else Path(each[-1]).name for each in ran if "-c" not in each]


# --- the command line


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], ("app", [])),
        (["app"], ("app", [])),
        (["app", "--server.port", "8600"], ("app", ["--server.port", "8600"])),
        (["test", "-k", "x", "--help"], ("test", ["-k", "x", "--help"])),
        (["bench", "--quick"], ("bench", ["--quick"])),
    ],
)
def test_the_first_word_chooses_and_the_rest_is_passed_on(
    arguments: list[str], expected: tuple[str, list[str]], project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    got: list[tuple[str, list[str]]] = []
    monkeypatch.chdir(project)
    for name in run.COMMANDS:
        monkeypatch.setitem(run.COMMANDS, name, lambda rest, name=name: got.append((name, rest)) or 7)
    assert run.main(arguments) == 7
    assert got == [expected]


@pytest.mark.parametrize(
    ("word", "ending"),
    [("tset", "did you mean test?"), ("benchmark", "did you mean bench?"), ("zzz", "app, test, bench")],
)
def test_an_unknown_word_gets_one_line_and_status_2(word: str, ending: str) -> None:
    done = subprocess.run([sys.executable, SCRIPT, word], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert repr(word) in line
    assert "app, test, bench" in line
    assert line.endswith(ending)


@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_help_names_every_command(flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run.main([flag]) == 0
    printed = capsys.readouterr().out
    assert all(f"run.py {name}" in printed or f"run.py [{name}]" in printed for name in run.COMMANDS)


def test_an_older_python_is_told_plainly() -> None:
    code = f"import runpy, sys; sys.version_info = (3, 8, 0); runpy.run_path({str(SCRIPT)!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == "Headroom needs Python 3.11 or newer; this is Python 3.8.\n"


def test_app_and_bench_become_the_environments_python(monkeypatch: pytest.MonkeyPatch) -> None:
    got: list[object] = []
    monkeypatch.setattr(run, "prepare", got.append)
    monkeypatch.setattr(run.os, "execv", lambda _, command: got.append(command[1:]))
    monkeypatch.setattr(run.subprocess, "call", lambda _: 0)
    run.app(["--server.port", "8600"])
    run.bench(["--quick"])
    assert got == [
        "app",
        ["-m", "streamlit", "run", "app.py", "--server.port", "8600"],
        "dev",
        ["-m", "benchmarks", "--quick"],
    ]


WHOLE = ["ruff", "ruff", "mypy", "pytest", "pytest"]


@pytest.mark.parametrize(
    ("arguments", "statuses", "status", "ran", "last"),
    [
        ([], {}, 0, WHOLE, "run.py: pytest -m browser"),
        ([], {"ruff": 1}, 1, WHOLE, "failed: ruff check, ruff format"),
        ([], {"mypy": 1, "pytest": 5}, 5, WHOLE, "failed: mypy, tests, browser tests"),
        (["-k", "x"], {"ruff": 1, "pytest": 0}, 0, ["pytest"], "run.py: pytest -k x"),
        (["-k", "x"], {"pytest": 2}, 2, ["pytest"], "failed: pytest"),
    ],
)
def test_every_step_runs_and_any_failure_counts(
    arguments: list[str],
    statuses: dict[str, int],
    status: int,
    ran: list[str],
    last: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    got: list[tuple[str, ...]] = []
    monkeypatch.setenv("CHROMIUM", "as it was")
    monkeypatch.setattr(run, "prepare", lambda _: None)
    monkeypatch.setattr(run, "ensure_browser", lambda: "/a/chromium")
    monkeypatch.setattr(run, "run_module", lambda *command: got.append(command) or statuses.get(command[0], 0))
    assert run.test(arguments) == status
    assert [command[0] for command in got] == ran
    assert got[-1] == ("pytest", *(arguments or ["-m", "browser"]))
    assert os.environ["CHROMIUM"] == "/a/chromium"
    assert capsys.readouterr().out.splitlines()[-1].endswith(last)


# --- the environment


def test_the_stamp_follows_every_file_behind_it_and_the_python(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app, dev = run.wanted_stamp("app"), run.wanted_stamp("dev")
    (project / "requirements-export.txt").write_text("kaleido>1\n", encoding="utf-8")
    assert run.wanted_stamp("app") == app
    assert run.wanted_stamp("dev") != dev
    dev = run.wanted_stamp("dev")
    (project / "requirements.txt").write_text("streamlit>1\n", encoding="utf-8")
    assert run.wanted_stamp("app") != app
    assert run.wanted_stamp("dev") != dev
    app = run.wanted_stamp("app")
    monkeypatch.setattr(run, "PYTHON_VERSION", "3.99")
    assert run.wanted_stamp("app") != app


def test_installs_happen_once_and_dev_satisfies_app(project: Path, commands: list[tuple[str, ...]]) -> None:
    run.prepare("app")
    assert installs(commands) == ["create", "requirements.txt"]
    run.prepare("app")
    run.prepare("dev")
    assert installs(commands) == ["create", "requirements.txt", "requirements-dev.txt"]
    run.prepare("app")
    run.prepare("dev")
    assert len(installs(commands)) == 3


def test_changed_requirements_are_installed_into_the_same_environment(
    project: Path, commands: list[tuple[str, ...]]
) -> None:
    run.prepare("dev")
    commands.clear()
    (project / "requirements.txt").write_text("streamlit>1\n", encoding="utf-8")
    run.prepare("app")
    run.prepare("dev")
    assert installs(commands) == ["requirements.txt", "requirements-dev.txt"]


@pytest.mark.parametrize("damage", ["no python", "no stamp", "other python", "empty stamp folder"])
def test_a_damaged_environment_is_rebuilt(
    damage: str,
    project: Path,
    commands: list[tuple[str, ...]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    run.prepare("app")
    commands.clear()
    leftover = run.VENV / "leftover"
    leftover.touch()
    if damage == "no python":
        run.venv_python().unlink()
    elif damage == "no stamp":
        run.stamp_file("app").unlink()
    elif damage == "other python":
        monkeypatch.setattr(run, "PYTHON_VERSION", "3.99")
        monkeypatch.setattr(run, "is_sound", lambda: False)
    else:
        shutil.rmtree(run.VENV)
        leftover.parent.mkdir()
        leftover.touch()
    run.prepare("app")
    assert installs(commands) == ["create", "requirements.txt"]
    assert not leftover.exists()
    assert "rebuilding .venv" in capsys.readouterr().out


@pytest.mark.parametrize("answer", [(False, ""), (True, "3.10 True"), (True, f"{run.PYTHON_VERSION} False")])
def test_an_environment_that_fails_its_probe_is_not_sound(
    answer: tuple[bool, str], project: Path, commands: list[tuple[str, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    run.prepare("app")
    assert run.is_sound()
    monkeypatch.setattr(run, "quietly", lambda *_: answer)
    assert not run.is_sound()


def test_a_failed_install_shows_why_and_leaves_no_stamp(
    project: Path, commands: list[tuple[str, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    run.prepare("app")
    monkeypatch.setattr(run, "quietly", lambda *_: (False, "ERROR: no such network"))
    with pytest.raises(SystemExit) as stopped:
        run.install("dev", uv=False)
    said = str(stopped.value)
    assert said.startswith("ERROR: no such network\n")
    assert "requirements-dev.txt could not be installed" in said
    assert not run.stamp_file("app").exists()
    assert not run.stamp_file("dev").exists()


def test_a_failed_creation_shows_why(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "quietly", lambda *_: (False, "No space left"))
    with pytest.raises(SystemExit, match=r"No space left\nrun.py: .venv could not be made"):
        run.prepare("app")


@pytest.mark.parametrize("missing", ["venv", "ensurepip"])
def test_without_venv_the_package_to_install_is_named(
    missing: str, project: Path, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run.importlib.util, "find_spec", lambda name: None if name == missing else name)
    with pytest.raises(SystemExit) as stopped:
        run.prepare("app")
    assert f"apt-get install python{run.PYTHON_VERSION}-venv" in str(stopped.value)
    assert not run.VENV.exists()


def test_without_venv_uv_does_the_work(
    project: Path, path: Path, commands: list[tuple[str, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run.importlib.util, "find_spec", lambda _: None)
    program(path / "uv")
    run.prepare("app")
    assert [command[:2] for command in commands] == [("uv", "venv"), ("uv", "pip")]
    assert run.is_installed("app")


def test_quietly_keeps_the_last_lines() -> None:
    code = "import sys; [print(i) for i in range(50)]; sys.exit('the end')"
    succeeded, output = run.quietly(sys.executable, "-uc", code)
    assert not succeeded
    assert output.splitlines()[-2:] == ["49", "the end"]
    assert len(output.splitlines()) == 8


# --- the browser


def test_browsers_are_taken_in_order_from_path(path: Path) -> None:
    assert run.find_browser() is None
    chrome = program(path / "google-chrome")
    assert run.find_browser() == str(chrome)
    chromium = program(path / "chromium")
    assert run.find_browser() == str(chromium)


def test_a_file_that_cannot_be_run_is_no_browser(path: Path) -> None:
    (path / "chromium").touch(mode=0o644)
    assert run.find_browser() is None


def test_chromium_names_the_browser(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    usual = program(path / "chromium")
    mine = program(tmp_path / "mine" / "my-browser")
    monkeypatch.setenv("CHROMIUM", str(mine))
    assert run.find_browser() == str(mine)
    monkeypatch.setenv("CHROMIUM", str(tmp_path / "absent"))
    assert run.find_browser() == str(usual)
    assert "no program here" in capsys.readouterr().out


def test_the_mac_places_come_last(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bundled = program(tmp_path / "Applications" / "Google Chrome")
    monkeypatch.setattr(run, "MAC_BROWSERS", (str(bundled),))
    assert run.find_browser() == str(bundled)
    usual = program(path / "chromium")
    assert run.find_browser() == str(usual)


@pytest.mark.parametrize(
    ("manager", "last"),
    [
        ("apt-get", "env DEBIAN_FRONTEND=noninteractive apt-get install -y chromium"),
        ("dnf", "dnf install -y chromium"),
        ("pacman", "pacman -S --noconfirm chromium"),
        ("zypper", "zypper --non-interactive install chromium"),
        ("apk", "apk add chromium"),
        ("brew", "brew install --cask google-chrome"),
    ],
)
@pytest.mark.parametrize("prefix", [(), ("sudo", "-n")])
def test_the_systems_package_manager_installs_a_browser(
    manager: str, last: str, prefix: tuple[str, ...], path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[tuple[str, ...]] = []

    def install(*command: str) -> tuple[bool, str]:
        ran.append(command)
        if "update" not in command:
            program(path / "chromium")
        return True, ""

    monkeypatch.setattr(run, "quietly", install)
    monkeypatch.setattr(run, "admin_prefix", lambda: prefix)
    program(path / manager)
    assert run.ensure_browser() == str(path / "chromium")
    assert " ".join(ran[-1]) == " ".join((*(() if manager == "brew" else prefix), last))
    assert len(ran) == (2 if manager == "apt-get" else 1)


@pytest.mark.parametrize(
    ("manager", "prefix", "hint", "tried"),
    [
        ("apt-get", (), "apt-get install -y chromium", 2),
        ("apt-get", None, "apt-get install -y chromium", 0),
        (None, (), "from its website", 0),
    ],
)
def test_with_no_browser_to_be_had_the_skip_is_said(
    manager: str | None,
    prefix: tuple[str, ...] | None,
    hint: str,
    tried: int,
    path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    ran: list[tuple[str, ...]] = []
    monkeypatch.setattr(run, "quietly", lambda *command: ran.append(command) or (False, "E: no network"))
    monkeypatch.setattr(run, "admin_prefix", lambda: prefix)
    if manager:
        program(path / manager)
    assert run.ensure_browser() is None
    assert len(ran) == tried
    printed = capsys.readouterr().out
    assert "the browser tests are SKIPPED" in printed
    assert hint in printed
    assert printed.count("E: no network") == tried


@pytest.mark.parametrize(
    ("user", "sudo", "expected"),
    [(0, None, ()), (1000, "exit 0", ("sudo", "-n")), (1000, "exit 1", None), (1000, None, None)],
)
def test_installing_needs_root_or_sudo_without_a_password(
    user: int,
    sudo: str | None,
    expected: tuple[str, ...] | None,
    path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(run.os, "geteuid", lambda: user)
    if sudo:
        program(path / "sudo", sudo)
    assert run.admin_prefix() == expected
