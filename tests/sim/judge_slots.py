# SPDX-License-Identifier: Apache-2.0
# Computes the slots of a schedule with Python's calendar and zones, for judge_life.py.
import re
from datetime import datetime, timedelta, timezone
from functools import lru_cache
from zoneinfo import ZoneInfo

SEC = 1000000
WEEKDAYS = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"]


def instant(text):
    return int(datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()) * SEC


def duration(text):
    """Converts 30s, 10m, 1h or PT1H2M3S to microseconds."""
    units = {"s": 1, "m": 60, "h": 3600, "d": 86400}
    text = text.lower()[2:] if text.startswith("PT") else text
    return sum(int(n) * units[u] for n, u in re.findall(r"(\d+)([smhd])", text)) * SEC


def field(text, low, high):
    found = set()
    for part in text.split(","):
        part, _, step = part.partition("/")
        for i, name in enumerate(WEEKDAYS):
            part = part.replace(name, str(i))
        if part == "*":
            first, last = low, high
        else:
            first, _, last = part.partition("-")
            first, last = int(first), int(last or first)
        found.update(range(first, last + 1, int(step or 1)))
    return found


def passes(wall, zone):
    """The times, in seconds since 1970, at which a zone has this local time: none, one or two."""
    found = []
    for fold in (0, 1):
        t = wall.replace(tzinfo=zone, fold=fold).astimezone(timezone.utc)
        if t.astimezone(zone).replace(tzinfo=None) == wall and int(t.timestamp()) not in found:
            found.append(int(t.timestamp()))
    return found


def after_gap(wall, zone):
    """The first time after the transition that skipped this local time."""
    low, high = sorted(int(wall.replace(tzinfo=zone, fold=f).timestamp()) for f in (0, 1))
    offset = lambda t: datetime.fromtimestamp(t, zone).utcoffset()
    before = offset(low)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if offset(middle) == before else (low, middle)
    return high if offset(low) == before else low


@lru_cache(maxsize=None)
def steady_offset(zone, date):
    """The UTC offset of a zone on a day, or None if it changes on that day."""
    offsets = {(date + timedelta(hours=h)).replace(tzinfo=zone).utcoffset() for h in range(-4, 29)}
    return next(iter(offsets)) if len(offsets) == 1 else None


def cron_slots(text, name, after, until):
    """Fixed times run once: after a gap, or at the first of two equal local times. With '*' they follow the zone."""
    zone = ZoneInfo(name)
    minute, hour, day, month, weekday = text.split()
    minutes, hours = sorted(field(minute, 0, 59)), sorted(field(hour, 0, 23))
    days, months, weekdays = field(day, 1, 31), field(month, 1, 12), {w % 7 for w in field(weekday, 0, 7)}
    wild = minute.startswith("*") or hour.startswith("*")
    date = datetime.fromtimestamp(after // SEC, zone).replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=None)
    date -= timedelta(days=1)
    end = datetime.fromtimestamp(until // SEC, zone).replace(tzinfo=None) + timedelta(days=1)
    while date <= end:
        if date.day in days and date.month in months and date.isoweekday() % 7 in weekdays:
            steady = steady_offset(zone, date)
            for h in hours:
                for m in minutes:
                    wall = date + timedelta(hours=h, minutes=m)
                    if steady is not None:
                        found = [int((wall - steady).replace(tzinfo=timezone.utc).timestamp())]
                    else:
                        found = passes(wall, zone)
                        if not wild:
                            found = found[:1] or [after_gap(wall, zone)]
                    for t in found:
                        if after < t * SEC <= until:
                            yield t * SEC
        date += timedelta(days=1)


def slots_of(text, zone, after, until):
    every = re.fullmatch(r"(PT\S+) since (\S+)", text)
    if every:
        step, anchor = duration(every[1]), instant(every[2])
        return range(anchor + step * max(1, (after - anchor) // step + 1), until + 1, step)
    if re.match(r"\d{4}-", text):
        return [t for t in [instant(text)] if after < t <= until]
    return cron_slots(text, zone, after, until)
