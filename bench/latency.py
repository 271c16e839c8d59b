"""What an answer costs and how long it takes at 1, 8 and 64 connections, and the rows of bench/run
about it. With as many requests under way as connections, the median of the time an answer takes tells
how well the server and its clients work at the same time: a server that keeps its answers back until
all of them are ready spends less on each, and lets its clients wait meanwhile."""

BOUND = 1.4
BOUNDED = (("sdk, 2026-07-28", "sdk-modern"), ("sdk, session", "sdk-legacy"), ("a2a", "a2a-send"))
SHOWN = (("gateway to HTTP", "gateway-http"), ("gateway to stdio", "gateway-stdio"),
         ("gateway to A2A", "gateway-a2a"))


def print_table(bench, counts, names=None):
    """All subjects that were measured over HTTP; what they share with the floor, where that was, too."""
    lines = [("HTTP, one core", "connections", "total us/call", "user us/call", "p50 us", "p99 us",
              "of the floor: total", "p50")]
    for name in names or bench.subjects:
        for count in counts:
            if name in bench.refusals or (name, count) not in bench.taken:
                continue
            total, user, half, most = (bench.median(name, figure, count) for figure in
                                       ("cpu_us", "user_us", "p50_us", "p99_us"))
            shares = ("", "")
            if ("floor", count) in bench.taken and name != "floor":
                shares = (f"{total / bench.median('floor', 'cpu_us', count):.2f} x",
                          f"{half / bench.median('floor', 'p50_us', count):.2f} x")
            lines.append((name, str(count), f"{total:.1f}", f"{user:.1f}", f"{half:.0f}", f"{most:.0f}",
                          *shares))
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    for line in lines:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip())
    print()


def compare(run, bench, subject, bound):
    shares = {count: bench.median(subject, "p50_us", count) / bench.median("floor", "p50_us", count)
              for count in run.COUNTS}
    beside = ", ".join(f"{shares[count]:.2f} x at {count}" for count in run.COUNTS
                       if count != run.CONNECTIONS)
    share = shares[run.CONNECTIONS]
    return run.Figure(f"{share:.2f} x ({bench.median(subject, 'p50_us'):.0f} / "
                      f"{bench.median('floor', 'p50_us'):.0f} us; {beside})",
                      bound is None or share <= bound)


def add_rows(run):
    """The rows, for bench/run."""
    for subjects, bound in ((BOUNDED, BOUND), (SHOWN, None)):
        for what, subject in subjects:
            def figure(bench, subject=subject, bound=bound):
                return compare(run, bench, subject, bound)

            run.row(f"p50 at {run.CONNECTIONS} connections: {what} / floor",
                    "-" if bound is None else f"{bound:.2f} x", "floor", subject)(figure)
