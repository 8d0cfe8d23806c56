# SPDX-License-Identifier: Apache-2.0
# The table of the benchmarks, CPU times of processes, and plots as SVG files.
import os


class Table:
    """One line per figure: target, limit or floor, ours, ratio, verdict."""

    def __init__(self):
        self.met = self.missed = 0
        print("%-4s %-58s %16s %16s %7s  %s" % ("", "what", "limit or floor", "ours", "ratio", "verdict"), flush=True)

    def row(self, target, what, limit, ours, unit, ratio, verdict):
        text = lambda v: "" if v is None else ("%.4g" if abs(v) < 1000 else "%.0f") % v + " " + unit
        print("%-4s %-58s %16s %16s %7s  %s" % (target, what, text(limit), text(ours), "" if ratio is None else "%.2f" % ratio, verdict),
              flush=True)

    def verdict(self, good, wanted):
        self.met += good
        self.missed += not good
        return ("met" if good else "missed") + " (%s)" % wanted

    def at_least(self, target, what, floor, ours, unit, ratio):
        """The figure is a rate: ours divided by the floor must reach the ratio."""
        r = ours / floor
        self.row(target, what, floor, ours, unit, r, self.verdict(r >= ratio, ">= %g of the floor" % ratio))

    def cost(self, target, what, floor, ours, unit, ratio):
        """The figure is a cost: the floor divided by ours must reach the ratio."""
        r = floor / ours
        self.row(target, what, floor, ours, unit, r, self.verdict(r >= ratio, ">= %g of the floor" % ratio))

    def at_most(self, target, what, limit, ours, unit):
        self.row(target, what, limit, ours, unit, ours / limit, self.verdict(ours <= limit, "<= limit"))

    def plain(self, target, what, ours, unit):
        self.row(target, what, None, ours, unit, None, "")

    def skipped(self, target, what, why):
        print("%-4s %-58s not measured: %s" % (target, what, why), flush=True)

    def end(self):
        print("load average %s; %d met, %d missed" % (" ".join("%.1f" % v for v in os.getloadavg()), self.met, self.missed))


def cpu(pid):
    """CPU seconds of all threads of a process. A thread that has ended is not counted."""
    total = 0
    for tid in os.listdir("/proc/%d/task" % pid):
        try:
            with open("/proc/%d/task/%s/schedstat" % (pid, tid)) as f:
                total += int(f.read().split()[0]) / 1e9
        except (OSError, IndexError):
            pass
    return total


def rss(pid):
    """Resident memory of a process in MiB."""
    with open("/proc/%d/status" % pid) as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmRSS:")) / 1024


def percentile(values, p):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * p / 100))]


COLOURS = ("#1f6feb", "#d1242f", "#1a7f37", "#9a6700", "#8250df", "#57606a")


def label(v):
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if v >= size:
            return "%g%s" % (v / size, letter)
    return "%g" % v


def decades(values):
    """The powers of ten that enclose the values."""
    low, high = 0, 0
    values = [v for v in values if v > 0] or [1]
    while 10 ** low > min(values):
        low -= 1
    while 10 ** (low + 1) <= min(values):
        low += 1
    high = low + 1
    while 10 ** high < max(values):
        high += 1
    return low, high


def plot(path, title, x_title, y_title, series):
    """Writes lines on two logarithmic axes. series: a name and a list of (x, y) for each line."""
    import math
    left, top, width, height = 70, 40, 520, 300
    x0, x1 = decades([x for _, points in series for x, _ in points])
    y0, y1 = decades([y for _, points in series for _, y in points])
    px = lambda x: left + width * (math.log10(x) - x0) / (x1 - x0)
    py = lambda y: top + height * (1 - (math.log10(max(y, 10 ** y0)) - y0) / (y1 - y0))
    out = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 760 400" font-family="sans-serif" font-size="12">',
           '<rect width="760" height="400" fill="white"/>',
           '<text x="%d" y="22" font-size="15">%s</text>' % (left, title),
           '<text x="%d" y="390" text-anchor="middle">%s</text>' % (left + width // 2, x_title),
           '<text transform="translate(16 %d) rotate(-90)" text-anchor="middle">%s</text>' % (top + height // 2, y_title)]
    for d in range(x0, x1 + 1):
        out.append('<path d="M%g %dV%d" stroke="#d0d7de"/><text x="%g" y="%d" text-anchor="middle">%s</text>' %
                   (px(10 ** d), top, top + height, px(10 ** d), top + height + 18, label(10 ** d)))
    for d in range(y0, y1 + 1):
        out.append('<path d="M%d %gH%d" stroke="#d0d7de"/><text x="%d" y="%g" text-anchor="end">%s</text>' %
                   (left, py(10 ** d), left + width, left - 6, py(10 ** d) + 4, label(10 ** d)))
    for i, (name, points) in enumerate(series):
        colour = COLOURS[i % len(COLOURS)]
        out.append('<polyline fill="none" stroke="%s" stroke-width="2" points="%s"/>' %
                   (colour, " ".join("%.1f,%.1f" % (px(x), py(y)) for x, y in points)))
        out += ['<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>' % (px(x), py(y), colour) for x, y in points]
        out.append('<rect x="%d" y="%d" width="12" height="3" fill="%s"/><text x="%d" y="%d">%s</text>' %
                   (left + width + 12, top + 8 + 20 * i, colour, left + width + 30, top + 13 + 20 * i, name))
    with open(path, "w") as f:
        f.write("\n".join(out) + "\n</svg>\n")
    print("plot: %s" % path, flush=True)
