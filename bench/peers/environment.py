"""A virtual environment for what a benchmark compares with, or a test runs: environment.py FOLDER REQUIREMENTS."""

import hashlib
import pathlib
import subprocess
import sys
import venv


def prepare(folder: pathlib.Path, requirements: pathlib.Path) -> pathlib.Path:
    """Installs what the file wants in the folder; gives its Python. Does nothing when it is there already."""
    python, stamp = folder / "bin/python", folder / "installed"
    wanted = hashlib.sha256(requirements.read_bytes()).hexdigest()
    if stamp.exists() and stamp.read_text() == wanted:
        return python
    print(f"installing {requirements.name}; the first time this downloads a lot", file=sys.stderr, flush=True)
    venv.create(folder, with_pip=True, symlinks=True)
    subprocess.run([python, "-m", "pip", "install", "--disable-pip-version-check", "-r", requirements], check=True,
                   stdout=sys.stderr)
    stamp.write_text(wanted)
    return python


if __name__ == "__main__":
    prepare(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
