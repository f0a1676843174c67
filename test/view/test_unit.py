# SPDX-License-Identifier: MIT
"""`hakmem enable` and `disable`: which library a unit gets, and where the drop-in goes. With a systemctl: test/launcher/."""
import subprocess
import sys

import pytest

from hakmem_command import main
from hakmem_view import installed
from hakmem_view.errors import ViewError


def test_a_hardened_unit_gets_the_hardened_library_or_none(tmp_path, monkeypatch, capsys):
    words = ["enable", "--yes", "--root", str(tmp_path), "--profile", "hardened", "web"]
    monkeypatch.setattr(installed, "HARDENED", tmp_path / "hardened" / "libhakmem.so")
    with pytest.raises(ViewError, match="no hardened library at .*`./hakmem build hardened` makes it"):
        main.run(words)
    (tmp_path / "hardened").mkdir()
    installed.HARDENED.touch()
    assert main.run(words) == 0 and f"LD_PRELOAD={installed.HARDENED}\n" in capsys.readouterr().out


def test_a_folder_that_is_not_there_is_no_image(tmp_path):
    with pytest.raises(ViewError, match="--root: there is no folder"):
        main.run(["enable", "--yes", "--root", str(tmp_path / "gone"), "web"])
    assert not (tmp_path / "gone").exists()


def test_disable_takes_no_options_of_enable():
    with pytest.raises(ViewError, match="unrecognized arguments"):
        main.run(["disable", "--profile", "more", "web"])


def test_a_process_without_hakmem_has_no_options():
    with subprocess.Popen([sys.executable, "-c", "print('ready', flush=True); input()"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          env={}) as one:
        assert one.stdout.readline() == b"ready\n"
        with pytest.raises(ViewError, match="does not run on hakmem"):
            main.run(["options", str(one.pid)])
        one.communicate()
