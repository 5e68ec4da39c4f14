"""Write what the other parts read of the contracts: `python scripts/export_abi.py`.

`contracts/interfaces/I<Contract>.vyi` for the contracts that call each other, and
`counterfoil/chain/artifacts/<Contract>.json` (ABI, bytecode, storage layout) for the product, which runs without a
compiler. A test fails when they are stale.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path

from vyper.cli.vyper_compile import compile_files
from vyper.compiler.settings import Settings

ROOT = Path(__file__).resolve().parent.parent
CONTRACTS = ROOT / "contracts"
ARTIFACTS = ROOT / "counterfoil" / "chain" / "artifacts"
CALLED = ("NodeRegistry", "SessionManager", "ReputationLedger")
EXPORTED = (*CALLED, "ExperienceLedger", "RoutingLens", "DisputeCourt", "testing/TestToken")
FORMATS = ["abi", "bytecode", "bytecode_runtime", "layout"]
IMPORT = re.compile(r"^from \.modules import (\w+)$", re.MULTILINE)
STRUCT = re.compile(r"^struct (\w+):\n(?:    .+\n)+", re.MULTILINE)


def compiled(source: Path, formats: list[str]) -> dict[str, object]:
    """One contract's outputs, by format."""
    outputs = compile_files([source], formats, paths=[ROOT], settings=Settings(evm_version="cancun"))
    return dict(outputs[source])


def borrowed_structs(source: str) -> Iterator[str]:
    """The structs of modules that a contract takes or gives: the compiler leaves them out of its interface."""
    for module in IMPORT.findall(source):
        for struct in STRUCT.finditer((CONTRACTS / "modules" / f"{module}.vy").read_text()):
            if f": {module}.{struct[1]}" in source:
                yield struct[0]


def interface(name: str) -> str:
    """The interface of a contract. Events stay out: the compiler leaves out which arguments are indexed."""
    source = CONTRACTS / f"{name}.vy"
    text = str(compiled(source, ["interface"])["interface"])
    borrowed = "".join(f"{struct}\n\n" for struct in sorted(borrowed_structs(source.read_text())))
    text = text.replace("# Structs\n\n", f"# Structs\n\n{borrowed}")
    without_events = re.sub(r"event \w+:\n(?:    .*\n)+\n*", "", text.replace("# Events\n\n", ""))
    about = f"@title I{name}\n@license Apache-2.0\n@notice Generated from {name}.vy."
    head = f'# pragma version ~=0.4.3\n"""\n{about}\n"""\n\n\n'
    return head + re.sub(r"\n{3,}", "\n\n\n", without_events).strip() + "\n"


def artifact(name: str) -> str:
    """The artifact of a contract as JSON."""
    outputs = compiled(CONTRACTS / f"{name}.vy", FORMATS)
    content = {
        "contract": Path(name).name,
        "abi": outputs["abi"],
        "bytecode": outputs["bytecode"],
        "runtime_bytecode": outputs["bytecode_runtime"],
        "storage_layout": outputs["layout"],
    }
    # The compiler names an interface's type by where its file lies on this machine.
    return re.sub(r'"[^"]*/(\w+)\.vyi"', r'"\1"', json.dumps(content, indent=1, sort_keys=True)) + "\n"


def exports() -> Iterator[tuple[Path, str]]:
    """Every exported file with its content, interfaces first, since artifacts are compiled with them."""
    for name in CALLED:
        yield CONTRACTS / "interfaces" / f"I{name}.vyi", interface(name)
    for name in EXPORTED:
        yield ARTIFACTS / f"{Path(name).name}.json", artifact(name)


def main() -> None:
    """Write all exports."""
    ARTIFACTS.mkdir(parents=True, exist_ok=True)
    for path, content in exports():
        path.write_text(content)
        print(f"wrote {path.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
