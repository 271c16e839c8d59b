"""./dev bench --against FOLDER [ROW…]: this build and that of FOLDER (another checkout's
build/release), subject by subject, in turn within each round, so that whatever disturbs the machine
disturbs both. Both take their load from this build's generators.

Times tell of a tenth, on a machine that others use too; so the verdict is on instructions, which
repeat within some thousandths: those of the server's process in user space for each call, counted by
valgrind's cachegrind at 1 and at 64 connections. A subject is started three times for it, with no
load, with calls on one connection and on 64; the differences are the calls'. Exits 1 when a call
takes more than 1 % more instructions than before, or when something that is here failed; without
valgrind the verdict is SKIPPED."""
import os
import re
import shutil
import statistics
import subprocess
import sys

BOUND = 1.01
CALLS = 4000
WARM_CALLS = 256
CACHEGRIND = ("valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null")
CONTROL = "floor"  # is the same in both builds: what its ratios are off by, all others' may be
NOT_OURS = ("pipe", "node-server", "node-gateway", "rust-gateway")


def started(run, names, build, under=()):
    bench = run.Bench(names, build, under)
    try:
        bench.prepare()
    except BaseException:
        bench.exits.close()
        raise
    return bench


def counted(run, build, name, connections):
    """Instructions of a server from its start to its end, with that many connections' calls."""
    bench = started(run, {name}, build, CACHEGRIND)
    with bench.exits:
        if name in bench.refusals:
            raise bench.refusals[name]
        bench.load(name, 1, requests=WARM_CALLS)
        if connections > 0:
            bench.load(name, connections, requests=CALLS)
        server = next(one for one in bench.started if one.pid == bench.subjects[name][0])
        server.stop()
        server.reader.join(10)
    # The gateway forks a process that watches over its servers: each of the two tells its own count.
    found = re.findall(rf"=={server.pid}==\s+I\s+refs:\s+([\d,]+)", "\n".join(server.output))
    if not found:
        raise run.Failed(f"{name} told no count under valgrind: " + " ".join(server.output[-2:]))
    return int(found[-1].replace(",", ""))


def instructions(run, build, name):
    """For each call: at 1 connection, at 64."""
    at_rest = counted(run, build, name, 0)
    return tuple((counted(run, build, name, count) - at_rest) / CALLS
                 for count in (1, run.CONNECTIONS))


def measure_times(run, names, builds):
    """Two benches, after their rounds."""
    benches = []
    try:
        for build in builds:
            benches.append(started(run, names, build))
        for bench in benches:
            bench.warm()
        for number in range(run.ROUNDS):
            print(f"round {number + 1} of {run.ROUNDS}", file=sys.stderr)
            for name in names:
                for bench in benches if number % 2 == 0 else reversed(benches):
                    if name in bench.subjects:
                        bench.take_round(name)
    finally:
        for bench in benches:
            bench.exits.close()
    return benches


def time_cells(run, name, ours, theirs):
    def share(figure, count):
        pairs = zip(ours.taken[name, count][figure], theirs.taken[name, count][figure])
        return statistics.median(our / their for our, their in pairs if their > 0)

    total = f"{share('cpu_us', run.CONNECTIONS):.2f} x"
    halves = " ".join(f"{share('p50_us', count):.2f}" for count in run.COUNTS)
    return [f"{total} ({ours.median(name):.1f} / {theirs.median(name):.1f} us)", f"{halves} x"]


def count_cells(run, name, builds):
    """Cells and whether the bound holds."""
    if shutil.which(CACHEGRIND[0]) is None:
        return ["valgrind is not installed", ""], None
    ours, theirs = (instructions(run, build, name) for build in builds)
    shares = [our / their for our, their in zip(ours, theirs)]
    return [f"{share:.3f} x ({our:.0f} / {their:.0f})"
            for share, our, their in zip(shares, ours, theirs)], max(shares) <= BOUND


def compare(run, other, names):
    """Prints the table; the exit status."""
    builds = (run.BUILD, other)
    names = sorted(set(names) - set(NOT_OURS) | {CONTROL})
    benches = measure_times(run, names, builds)
    counts = [str(count) for count in run.COUNTS]
    lines = [("this build / " + os.path.relpath(other, run.ROOT), "total CPU, 64 connections",
              "p50 at " + ", ".join(counts), "instructions a call at 1", "at 64", "verdict")]
    status = 0
    for name in names:
        refusals = [bench.refusals[name] for bench in benches if name in bench.refusals]
        try:
            if refusals:
                raise refusals[0]
            cells = time_cells(run, name, *benches)
            more, is_within = count_cells(run, name, builds)
            verdict = "SKIPPED" if is_within is None else "ok" if is_within else "OVER"
            status = 1 if verdict == "OVER" else status
        except run.Missing as error:
            cells, more, verdict = [str(error)[:80]], ["", "", ""], "SKIPPED"
        except (*run.FAILURES, subprocess.SubprocessError) as error:
            cells, more, verdict, status = [str(error)[:80]], ["", "", ""], "FAILED", 1
        lines.append((name, *cells, *more, verdict))
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    for line in lines:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip())
    return status
