"""Sizes: the library and a server made with it, stripped, and what they need at run time; the rows of
bench/run that compare them with their bounds.

The smallest server is the weather example linked whole, with libc, against a build for size without
TLS, SQLite and regular expressions (./dev build small). glibc itself takes the larger part of it: a
program that only looks up a host is shown beside."""
import collections
import os
import re
import shutil
import subprocess
import tempfile

HOST = r"""
#include <netdb.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    struct addrinfo *found;
    return printf("%d\n", argc) < 0 || getaddrinfo(argv[0], NULL, NULL, &found);
}
"""


class Sizes:
    def __init__(self, run):
        self.run = run

    def done(self, *command, **more):
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False, **more)
        if done.returncode != 0:
            raise self.run.Failed(f"{command[0]}: {done.stdout.strip()[-300:]}")
        return done.stdout

    def figure(self, path, bound, needs=None, beside=""):
        """Of a file, stripped; `needs`: what to call its shared libraries, when it has any."""
        with tempfile.TemporaryDirectory(prefix="patchbay-size.") as folder:
            stripped = os.path.join(folder, "stripped")
            self.done("strip", "-o", stripped, path)
            size = os.path.getsize(stripped)
        if needs is None:
            needs = " ".join(sorted(re.findall(r"^\s*lib([\w.+-]+?)\.so[.\d]* =>",
                                               self.done("ldd", path), re.M)))
        text = f"{size / 1000:,.0f} KB, needs {needs or 'nothing'}{beside}"
        return self.run.Figure(text, bound is None or size < bound)

    def library(self, _):
        return self.figure(os.path.join(self.run.BUILD, "libpatchbay.so"), 1268e3)

    def modules(self, path):
        """Code and tables by the folder of src they are from, in KB, as linked: what is inlined counts
        where it went, and what has no symbol (relocations, strings, unwinding) is not in it."""
        weights = collections.Counter()
        for line in self.done("nm", "-S", "-l", "--defined-only", path).splitlines():
            found = re.match(r"[0-9a-f]+ ([0-9a-f]+) [^bB] [^\t]+\t.*\bsrc/(\w+)/[^/]+:\d+$", line)
            if found:
                weights[found.group(2)] += int(found.group(1), 16)
        if not weights:
            raise self.run.Missing("the build has no debugging information")
        return self.run.Figure(", ".join(f"{module} {bytes / 1000:.0f}"
                                         for module, bytes in weights.most_common()), True)

    def library_modules(self, _):
        return self.modules(os.path.join(self.run.BUILD, "libpatchbay.so"))

    def program_modules(self, _):
        return self.modules(self.run.program("patchbay"))

    def example(self, _):
        return self.figure(self.run.program("examples", "weather"), None)

    def whole(self, kind, folder):
        """The weather example with everything in it, and how large it would be without us."""
        build = os.path.join(self.run.ROOT, "build", kind)
        tree = os.path.join(folder, "tree")
        self.done("cmake", "--install", build, "--prefix", tree, "--component", "development")
        folders = [found for found, _, files in os.walk(tree) if "patchbay.pc" in files]
        flags = self.done("pkg-config", "--static", "--cflags", "--libs", "patchbay",
                          env=dict(os.environ, PKG_CONFIG_PATH=folders[0])).split()
        weather = os.path.join(folder, "weather")
        self.done("cc", "-static", "-O2", os.path.join(self.run.ROOT, "examples", "weather.c"),
                  *flags, "-o", weather)
        bare = os.path.join(folder, "host")
        with open(bare + ".c", "w", encoding="ascii") as text:
            text.write(HOST)
        self.done("cc", "-static", "-s", bare + ".c", "-o", bare)
        return weather, f" (glibc's part {os.path.getsize(bare) / 1000:,.0f} KB)"

    def small(self, _):
        if shutil.which("pkg-config") is None:
            raise self.run.Missing("no pkg-config")
        self.done(os.path.join(self.run.ROOT, "dev"), "build", "small")
        with tempfile.TemporaryDirectory(prefix="patchbay-size.") as folder:
            weather, beside = self.whole("small", folder)
            return self.figure(weather, 1.5e6, "", beside)

    def full(self, _):
        with tempfile.TemporaryDirectory(prefix="patchbay-size.") as folder:
            weather, beside = self.whole("release", folder)
            return self.figure(weather, None, "", beside)


def add_rows(run):
    sizes = Sizes(run)
    run.row("size: libpatchbay.so", "1,268 KB")(sizes.library)
    run.row("size: libpatchbay.so, by module", "-")(sizes.library_modules)
    run.row("size: patchbay, by module", "-")(sizes.program_modules)
    run.row("size: weather, shared system libraries", "-")(sizes.example)
    run.row("size: weather, static, small build", "1,500 KB")(sizes.small)
    run.row("size: weather, static, with everything", "-")(sizes.full)
