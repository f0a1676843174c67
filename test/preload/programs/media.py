# SPDX-License-Identifier: MIT
"""Video, sound and pages: encoded bytes and decoded pictures are compared."""

import re

from rig.registry import program

QUIET = ("ffmpeg", "-hide_banner", "-nostdin", "-loglevel", "error", "-y", "-bitexact")


@program("ffmpeg")
def ffmpeg(run):
    picture = ["-f", "lavfi", "-i", "testsrc2=size=640x360:rate=25:duration=4"]
    sound = ["-f", "lavfi", "-i", "sine=frequency=440:duration=4"]
    run.cmd(
        *QUIET,
        *picture,
        *sound,
        "-c:v",
        "libx264",
        "-preset",
        "veryfast",
        "-threads",
        "2",
        "-c:a",
        "aac",
        "-flags",
        "+bitexact",
        "film.mp4",
        label="ffmpeg h264",
    )
    run.cmd(
        *QUIET,
        *picture,
        "-c:v",
        "mpeg4",
        "-threads",
        "2",
        "-flags",
        "+bitexact",
        "film.avi",
        label="ffmpeg mpeg4",
    )
    for name in ("film.mp4", "film.avi"):
        run.file(name)
        run.cmd(
            *QUIET, "-threads", "2", "-i", name, "-f", "framemd5", "-", label=f"frames of {name}"
        )
    run.cmd(
        *QUIET,
        "-i",
        "film.mp4",
        "-vf",
        "scale=320:-2,hflip,edgedetect,drawgrid",
        "-frames:v",
        "20",
        "still-%d.png",
        label="ffmpeg filters",
    )
    run.file("still-20.png")


@program("gs")
def ghostscript(run):
    run.guest("pages.ps")
    quiet = ["gs", "-q", "-dSAFER", "-dBATCH", "-dNOPAUSE"]
    run.cmd(
        *quiet,
        "-sDEVICE=png16m",
        "-r72",
        "-dTextAlphaBits=4",
        "-dGraphicsAlphaBits=4",
        "-sOutputFile=page-%d.png",
        "pages.ps",
    )
    run.file("page-1.png")
    run.file("page-4.png")
    run.cmd(*quiet, "-sDEVICE=pdfwrite", "-sOutputFile=pages.pdf", "pages.ps")
    run.file("pages.pdf", clean=without_dates)
    run.cmd(*quiet, "-sDEVICE=tiffg4", "-r150", "-sOutputFile=pages.tiff", "pages.pdf")
    run.file("pages.tiff", clean=lambda data: re.sub(rb"\d{4}:\d\d:\d\d \d\d:\d\d:\d\d", b"", data))
    run.cmd(*quiet, "-sDEVICE=txtwrite", "-sOutputFile=-", "pages.pdf")


def without_dates(pdf):
    """Creation times and the identifiers made from them."""
    pdf = re.sub(rb"D:\d{14}[^)]*", b"", pdf)
    pdf = re.sub(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[Z+\-0-9:]*", b"", pdf)
    pdf = re.sub(rb"uuid:[-0-9a-f]+", b"uuid:", pdf)
    return re.sub(rb"/ID ?\[.*?\]", b"/ID []", pdf, flags=re.DOTALL)
