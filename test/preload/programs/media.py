# SPDX-License-Identifier: MIT
"""Video, sound and pages: encoded bytes and decoded pictures are compared."""

import re

from rig.registry import program

FFMPEG = "ffmpeg -hide_banner -nostdin -loglevel error -y -bitexact"
PICTURE = "-f lavfi -i testsrc2=size=640x360:rate=25:duration=4"
SOUND = "-f lavfi -i sine=frequency=440:duration=4"
GS = "gs -q -dSAFER -dBATCH -dNOPAUSE"


@program("ffmpeg")
def ffmpeg(run):
    run.cmd(f"{FFMPEG} {PICTURE} {SOUND} -c:v libx264 -preset veryfast -threads 2 -c:a aac"
            " -flags +bitexact film.mp4")
    run.cmd(f"{FFMPEG} {PICTURE} -c:v mpeg4 -threads 2 -flags +bitexact film.avi")
    for name in ("film.mp4", "film.avi"):
        run.file(name)
        run.cmd(f"{FFMPEG} -threads 2 -i {name} -f framemd5 -")
    run.cmd(f"{FFMPEG} -i film.mp4 -vf scale=320:-2,hflip,edgedetect,drawgrid -frames:v 20"
            " still-%d.png")
    run.file("still-20.png")


@program("gs")
def ghostscript(run):
    run.guest("pages.ps")
    run.cmd(f"{GS} -sDEVICE=png16m -r72 -dTextAlphaBits=4 -dGraphicsAlphaBits=4"
            " -sOutputFile=page-%d.png pages.ps")
    run.file("page-1.png")
    run.file("page-4.png")
    run.cmd(f"{GS} -sDEVICE=pdfwrite -sOutputFile=pages.pdf pages.ps")
    run.file("pages.pdf", clean=without_dates)
    run.cmd(f"{GS} -sDEVICE=tiffg4 -r150 -sOutputFile=pages.tiff pages.pdf")
    run.file("pages.tiff", clean=lambda data: re.sub(rb"\d{4}:\d\d:\d\d \d\d:\d\d:\d\d", b"", data))
    run.cmd(f"{GS} -sDEVICE=txtwrite -sOutputFile=- pages.pdf")


def without_dates(pdf):
    """Creation times and the identifiers made from them."""
    for pattern in (rb"D:\d{14}[^)]*", rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[Z+\-0-9:]*",
                    rb"uuid:[-0-9a-f]+", rb"(?s)/ID ?\[.*?\]"):
        pdf = re.sub(pattern, b"", pdf)
    return pdf
