#!/usr/bin/env python3
"""Draws the demo site's pictures, its icon and its one-page PDF. Standard library only.

The files are committed; run this again only to change them. The result is the same on every run.
"""
import math
import struct
import zlib
from pathlib import Path

SITE = Path(__file__).resolve().parent / "site"


def png(width, height, pixel):
    """A PNG whose pixel (x, y) has the colour `pixel(x, y)` gives as (r, g, b)."""
    rows = bytearray()
    for y in range(height):
        rows.append(0)
        for x in range(width):
            rows += bytes(max(0, min(255, int(c))) for c in pixel(x, y))
    chunk = lambda kind, data: struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(bytes(rows), 9)) + chunk(b"IEND", b"")


def sea(width, height, sky, water, sun, swell):
    """A horizon with a low sun and its path on the water."""
    horizon = int(height * 0.48)

    def pixel(x, y):
        if y < horizon:
            t = y / horizon
            near = math.hypot(x - sun[0], y - sun[1])
            glow = max(0.0, 1 - near / (width * 0.35))
            disc = 255 if near < height * 0.06 else 0
            return tuple(max(disc, a + (b - a) * t + 70 * glow) for a, b in zip(*sky))
        t = (y - horizon) / (height - horizon)
        wave = math.sin((x + 9 * math.sin(y / 5)) / (4 + 14 * t)) * swell * (0.3 + t)
        path = max(0.0, 1 - abs(x - sun[0] + wave * 2) / (8 + 50 * t)) * 90 * (1 - t)
        return tuple(a + (b - a) * t + wave + path for a, b in zip(*water))

    return png(width, height, pixel)


def chart(width, height):
    """A shallow bay as depth bands, the way a nautical chart tints it."""
    bands = [(222, 205, 160), (176, 214, 224), (141, 194, 217), (104, 169, 205), (70, 138, 184)]

    def pixel(x, y):
        shore = height * 0.3 + 40 * math.sin(x / 60) + 18 * math.sin(x / 23 + 2)
        depth = (y - shore) / (height * 0.16)
        island = math.hypot((x - width * 0.7) / 60, (y - height * 0.62) / 34)
        depth = min(depth, (island - 1) * 1.6)
        band = bands[max(0, min(4, int(depth + 1)))]
        line = 0.82 if depth > -1 and abs(depth - round(depth)) < 0.03 else 1
        return tuple(c * line for c in band)

    return png(width, height, pixel)


def lamp(size):
    """The icon: a lit lamp on dark ground."""

    def pixel(x, y):
        r = math.hypot(x - size / 2 + 0.5, y - size / 2 + 0.5) / (size / 2)
        return (255, 214, 110) if r < 0.45 else (31 + 120 * max(0, 1 - r), 48 + 80 * max(0, 1 - r), 74)

    return png(size, size, pixel)


def pdf(lines):
    """A one-page PDF 1.4 with a correct cross-reference table."""
    text = "BT /F1 12 Tf 72 770 Td 18 TL " + " ".join(f"({line}) Tj T*" for line in lines) + " ET"
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>",
        f"<< /Length {len(text)} >>\nstream\n{text}\nendstream",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Courier >>",
        "<< /Title (Tide table of Lenn) /Producer (make-images.py) >>",
    ]
    out, offsets = "%PDF-1.4\n", []
    for number, body in enumerate(objects, 1):
        offsets.append(len(out))
        out += f"{number} 0 obj\n{body}\nendobj\n"
    start = len(out)
    out += f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n" + "".join(f"{o:010} 00000 n \n" for o in offsets)
    out += f"trailer\n<< /Size {len(objects) + 1} /Root 1 0 R /Info 6 0 R >>\nstartxref\n{start}\n%%EOF\n"
    return out.encode("latin-1")


def tide(hour):
    """Height in metres of an invented tide with the usual half-day swing."""
    return 2.6 + 2.1 * math.cos(2 * math.pi * (hour - 3.4) / 12.42)


def main():
    images = SITE / "images"
    images.mkdir(parents=True, exist_ok=True)
    dawn = sea(320, 200, ((70, 80, 140), (240, 170, 120)), ((150, 120, 120), (24, 44, 80)), (110, 84), 9)
    (images / "dawn.png").write_bytes(dawn)
    noon = sea(320, 200, ((90, 160, 220), (200, 225, 240)), ((90, 160, 190), (16, 80, 110)), (220, 30), 6)
    (images / "noon.png").write_bytes(noon)
    gale = sea(320, 200, ((50, 56, 66), (120, 126, 130)), ((96, 110, 112), (28, 40, 46)), (60, -40), 26)
    (images / "gale.png").write_bytes(gale)
    (images / "bay.png").write_bytes(chart(420, 280))
    (SITE / "favicon.png").write_bytes(lamp(32))
    rows = [f"{h:02}:00   {tide(h):4.1f} m   {'#' * int(tide(h) * 6)}" for h in range(24)]
    (SITE / "tide-table.pdf").write_bytes(pdf(["TIDE TABLE OF LENN", "", "hour     height", *rows, "", "Heights above the lowest stone of the quay."]))


if __name__ == "__main__":
    main()
