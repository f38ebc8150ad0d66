#!/usr/bin/python3
"""The colours of the web pages: contrast (WCAG 2.2, 1.4.3 and 1.4.11), and how far apart those with a meaning are (CIEDE2000;
Sharma, Wu, Dalal 2005) for who sees all colours, and for who does not (Machado, Oliveira, Fernandes 2009, severity 1)."""

import itertools
import math
import pathlib
import re
import sys

sys.dont_write_bytecode = True

from tap import Tap  # noqa: E402

CSS = pathlib.Path(__file__).resolve().parents[2] / "api" / "ui" / "pawl.css"
TEXT, GRAPHICS, APART = 4.5, 3, 14
ON_SURFACE = {TEXT: ("ink", "muted", "link", "hold", "refuse", "ok"), GRAPHICS: ("rule", "past", "wait")}
ON_OWN = (("hold", "hold-soft"), ("refuse", "refuse-soft"), ("ok", "ok-soft"), ("muted", "sunken"), ("ink", "paper"), ("muted", "paper"), ("link", "paper"), ("surface", "refuse"), ("surface", "ink"))
MEANINGS = ("hold", "past", "wait", "refuse", "ok")
SEEN_BY = {
    "all": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanopia": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deuteranopia": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    "tritanopia": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
}
XYZ = ((0.4124564, 0.3575761, 0.1804375), (0.2126729, 0.7151522, 0.0721750), (0.0193339, 0.1191920, 0.9503041))
WHITE = (0.95047, 1, 1.08883)


def colours(css):
    """({name: linear RGB} of light, of dark)."""
    found = re.findall(r"--([a-z-]+): light-dark\((#[0-9a-f]+), (#[0-9a-f]+)\)", css)
    return [{one[0]: linear(one[which]) for one in found} for which in (1, 2)]


def linear(text):
    text = text[1:] if len(text) == 7 else "".join(2 * one for one in text[1:])
    parts = [int(text[i:i + 2], 16) / 255 for i in (0, 2, 4)]
    return [one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in parts]


def times(matrix, vector):
    return [sum(a * b for a, b in zip(row, vector)) for row in matrix]


def contrast(one, other):
    low, high = sorted(times(XYZ, colour)[1] for colour in (one, other))
    return (high + 0.05) / (low + 0.05)


def lab(rgb):
    x, y, z = (one ** (1 / 3) if one > 216 / 24389 else (24389 / 27 * one + 16) / 116
               for one in (max(0, a) / b for a, b in zip(times(XYZ, rgb), WHITE)))
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def apart(one, other):
    (l1, a1, b1), (l2, a2, b2) = one, other
    mean = ((math.hypot(a1, b1) + math.hypot(a2, b2)) / 2) ** 7
    g = 1.5 - math.sqrt(mean / (mean + 25 ** 7)) / 2
    c1, c2 = math.hypot(a1 * g, b1), math.hypot(a2 * g, b2)
    h1, h2 = (math.degrees(math.atan2(b, a * g)) % 360 for a, b in ((a1, b1), (a2, b2)))
    turn = (h2 - h1 + 180) % 360 - 180 if c1 * c2 else 0
    hue = (h1 + turn / 2) % 360 if c1 * c2 else h1 + h2
    light, chroma = (l1 + l2) / 2, (c1 + c2) / 2
    t = 1 + sum(k * math.cos(math.radians(n * hue + at)) for k, n, at in ((-0.17, 1, -30), (0.24, 2, 0), (0.32, 3, 6), (-0.2, 4, -63)))
    dl = (l2 - l1) / (1 + 0.015 * (light - 50) ** 2 / math.sqrt(20 + (light - 50) ** 2))
    dc = (c2 - c1) / (1 + 0.045 * chroma)
    dh = 2 * math.sqrt(c1 * c2) * math.sin(math.radians(turn / 2)) / (1 + 0.015 * chroma * t)
    turned = -2 * math.sqrt(chroma ** 7 / (chroma ** 7 + 25 ** 7)) * math.sin(math.radians(60 * math.exp(-((hue - 275) / 25) ** 2)))
    return math.sqrt(dl ** 2 + dc ** 2 + dh ** 2 + turned * dc * dh)


def faults(css):
    said = []
    for scheme, has in zip(("light", "dark"), colours(css)):
        pairs = [(least, one, "surface") for least, names in ON_SURFACE.items() for one in names] + [(TEXT, *pair) for pair in ON_OWN]
        said += [f"{scheme}: --{one} on --{other} has {contrast(has[one], has[other]):.2f}, not {least}"
                 for least, one, other in pairs if contrast(has[one], has[other]) < least]
        for who, matrix in SEEN_BY.items():
            seen = {one: lab([min(1, max(0, part)) for part in times(matrix, has[one])]) for one in MEANINGS}
            said += [f"{scheme}, {who}: --{one} and --{other} are {apart(seen[one], seen[other]):.1f} apart, not {APART}"
                     for one, other in itertools.combinations(MEANINGS, 2) if apart(seen[one], seen[other]) < APART]
    return said


def the_difference_of_two_colours_is_that_of_its_paper():
    for one, other, is_ in (((50, 2.6772, -79.7751), (50, 0, -82.7485), 2.0425), ((50, -1.3802, -84.2814), (50, 0, -82.7485), 1.0),
                            ((50, 2.5, 0), (61, -5, 29), 22.8977), ((60.2574, -34.0099, 36.2677), (60.4626, -34.1751, 39.4387), 1.2644),
                            ((2.0776, 0.0795, -1.135), (0.9033, -0.0636, -0.5514), 0.9082), ((50, 0, 0), (50, -1, 2), 2.3669)):
        assert abs(apart(one, other) - is_) < 1e-4, (f"{one} {other}: {apart(one, other)}, not {is_}")


def each_meaning_is_told_from_the_others_and_every_text_can_be_read():
    css = CSS.read_text(encoding="utf-8")
    found = faults(css)
    assert not found, "\n".join(found)
    for name, light, dark, is_ in (("ok", "#8a5a0b", "#4cc9a0", "light, deuteranopia"), ("muted", "#8a97a6", "#9fadbc", "light: --muted"), ("wait", "#b07a00", "#ff9a5c", "dark")):
        changed = re.sub(rf"--{name}: light-dark\([^)]+\)", f"--{name}: light-dark({light}, {dark})", css)
        assert any(is_ in one for one in faults(changed)), f"another --{name} is not noticed: {faults(changed)}"


TAP = Tap()
for one in (the_difference_of_two_colours_is_that_of_its_paper, each_meaning_is_told_from_the_others_and_every_text_can_be_read):
    TAP.run(one.__name__.replace("_", " "), one)
sys.exit(TAP.done())
