# SPDX-License-Identifier: MIT
"""Ghostscript: pages of text, curves and shades turned into a PDF, and that into pictures."""
from pathlib import Path

from hakmem_lab.apps import App, BadOutput, Dice, Inputs, Stage, digest

FONTS = ("Helvetica", "Times-Roman", "Courier", "Helvetica-Bold", "Times-Italic")
QUIET = ["-q", "-dBATCH", "-dNOPAUSE", "-dSAFER"]
# Nothing of the time and the place of the run may get into the PDF.
SAME = ["-dOmitInfoDate=true", "-dOmitID=true", "-dOmitXMP=true"]


def page(dice: Dice, number: int) -> str:
    lines = [f"%%Page: {number} {number}", "gsave"]
    for row in range(45):
        font, size = dice.pick(FONTS), dice.between(7, 12)
        lines.append(f"/{font} findfont {size} scalefont setfont 40 {780 - 15 * row} moveto "
                     f"({dice.text(dice.between(30, 80))}) show")
    for _ in range(60):
        points = " ".join(str(dice.between(0, 600)) for _ in range(6))
        lines.append(f"{dice.below(100) / 100} {dice.below(100) / 100} {dice.below(100) / 100} setrgbcolor "
                     f"{dice.below(600)} {dice.below(800)} moveto {points} curveto "
                     f"{dice.pick(('stroke', 'closepath fill', 'closepath eofill'))}")
    lines.append(f"<< /ShadingType 2 /ColorSpace /DeviceRGB /Coords [0 0 {dice.between(100, 600)} 300] /Function << "
                 f"/FunctionType 2 /Domain [0 1] /C0 [1 {dice.below(10) / 10} 0] /C1 [0 0 1] /N 1 >> >> "
                 "newpath 300 100 80 0 360 arc clip shfill")
    # Procedures, dictionaries and strings of the language itself.
    lines.append(f"/d {dice.between(50, 200)} dict def 0 1 {dice.between(100, 400)} "
                 "{ dup 10 string cvs cvn exch d 3 1 roll put } for")
    lines.append("grestore showpage")
    return "\n".join(lines)


def document(pages: int) -> str:
    dice = Dice(17)
    return "\n".join(["%!PS-Adobe-3.0", *(page(dice, number + 1) for number in range(pages)), "%%EOF", ""])


class Ghostscript(App):
    name = "ghostscript"
    title = "Ghostscript, PostScript to PDF to pictures"
    text = "Turns a generated PostScript file into a PDF, then draws the PDF's pages."
    programs = ("gs",)
    packages = ("ghostscript",)
    metric = "cpu"

    def prepare(self, work: Path, scale: float) -> None:
        pages = self.count(24, scale)
        Inputs(self, work, scale).file("pages.ps", lambda path: path.write_text(document(pages)))

    def run(self, stage: Stage) -> str:
        pdf = stage.scratch / "pages.pdf"
        stage.run(["gs", *QUIET, *SAME, "-sDEVICE=pdfwrite", f"-sOutputFile={pdf}", stage.input("pages.ps")])
        stage.run(["gs", *QUIET, "-sDEVICE=ppmraw", "-r50", "-dTextAlphaBits=4",
                   f"-sOutputFile={stage.scratch}/%03d.ppm", pdf])
        pictures = sorted(stage.scratch.glob("*.ppm"))
        if len(pictures) != self.count(24, stage.scale):
            raise BadOutput(f"{len(pictures)} pictures")
        return digest(pdf.read_bytes(), *(picture.read_bytes() for picture in pictures))
