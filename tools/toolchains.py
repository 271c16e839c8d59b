"""Builds programs on the SDKs of other languages, for bench/peers and tests/interop/sdks. Each method
returns the command of what it built; it raises `missing` with the reason where the toolchain or its
registry is not there, and Broken where both are and our program does not build. Everything is written
below `into`."""
import os
import shutil
import subprocess

BUILD_SECONDS = 900
CRATE_SECONDS = 3600  # several hundred crates


class Broken(Exception):
    pass


def run_tool(missing, what, command, seconds=BUILD_SECONDS, **options):
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=seconds, check=False, **options)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise missing(f"{what}: {error}") from None
    if done.returncode != 0:
        last = (done.stderr or done.stdout).strip().splitlines()[-1:] or ["no word why"]
        raise missing(f"{what} failed: {last[0][:160]}")


class Toolchains:
    def __init__(self, source, into, missing):
        self.source, self.into, self.missing = source, into, missing
        self.tools = os.path.dirname(os.path.realpath(__file__))
        os.makedirs(into, exist_ok=True)

    def needs(self, tool):
        if not shutil.which(tool):
            raise self.missing(f"{tool} is not installed")

    def go(self, name):
        """The package in source/go."""
        self.needs("go")
        out = os.path.join(self.into, "go", name)
        folder = os.path.join(self.source, "go")
        run_tool(self.missing, "go mod download", ["go", "mod", "download"], cwd=folder)
        run_tool(Broken, "go build", ["go", "build", "-o", out, "."], cwd=folder)
        return [out]

    def rust(self, name):
        """The package in source/rust, copied to where its lock file may stand: that one names the
        registry, so it is made anew and not kept. What we use ourselves is pinned in Cargo.toml."""
        self.needs("cargo")
        into = os.path.join(self.into, "rust")
        package = os.path.join(into, "package")
        shutil.copytree(os.path.join(self.source, "rust"), package, dirs_exist_ok=True)
        manifest = ["--manifest-path", os.path.join(package, "Cargo.toml")]
        run_tool(self.missing, "cargo fetch", ["cargo", "fetch", *manifest])
        run_tool(Broken, "cargo build", ["cargo", "build", "--offline", "--release", "--target-dir", into, *manifest])
        return [os.path.join(into, "release", name)]

    def crate(self, name, version):
        """The crate of that name, by its own lock file, without optional features. That
        it does not build is no fault of ours."""
        self.needs("cargo")
        into = os.path.join(self.into, f"{name}-{version}")
        program = os.path.join(into, "bin", name)
        if not os.path.exists(program):
            run_tool(self.missing, f"cargo install {name} {version}",
                     ["cargo", "install", "--quiet", "--locked", "--no-default-features", "--version", version,
                      "--root", into, "--target-dir", os.path.join(into, "target"), name],
                     seconds=CRATE_SECONDS)
            shutil.rmtree(os.path.join(into, "target"), ignore_errors=True)
        return [program]

    def python(self, script):
        """The script in source/python, in an environment with what its requirements.txt names."""
        self.needs("python3")
        into = os.path.join(self.into, "python")
        program, stamp = os.path.join(into, "bin", "python"), os.path.join(into, ".installed")
        with open(os.path.join(self.source, "python", "requirements.txt"), encoding="utf-8") as file:
            wanted = file.read()
        if not os.path.exists(stamp) or open(stamp, encoding="utf-8").read() != wanted:
            run_tool(self.missing, "python3 -m venv", ["python3", "-m", "venv", "--clear", into])
            run_tool(self.missing, "pip install", [program, "-m", "pip", "install", "-q",
                                                   "--disable-pip-version-check", *wanted.split()])
            with open(stamp, "w", encoding="utf-8") as file:
                file.write(wanted)
        return [program, os.path.join(self.source, "python", script)]

    def node(self, script):
        """The script in source/node, copied to where its package.json's packages are."""
        self.needs("npm")
        into, source = os.path.join(self.into, "node"), os.path.join(self.source, "node")
        run_tool(self.missing, "npm install", [os.path.join(self.tools, "npm-install"), source, into])
        for name in os.listdir(source):
            if name.endswith(".mjs"):
                shutil.copy(os.path.join(source, name), into)
        return [os.path.join(into, "node_modules", ".bin", "node"), os.path.join(into, script)]
