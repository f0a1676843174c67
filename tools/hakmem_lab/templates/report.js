// SPDX-License-Identifier: MIT
// Draws the figures, one after the other, so that the page can be read meanwhile. What went wrong is counted in
// data-errors of the document; data-ready says that all is drawn, data-plots how many.
(() => {
  "use strict";
  const root = document.documentElement;
  const figures = JSON.parse(document.getElementById("figures").textContent);
  const config = {
    displaylogo: false, responsive: true, scrollZoom: false,
    modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"],
  };
  const NARROW = 680;

  // On a narrow window legends go below the plot.
  function fit(figure, width) {
    const layout = structuredClone(figure.layout);
    if (layout.legend && width < NARROW) {
      const lines = Math.ceil(figure.data.length / 2) + 1;
      layout.legend = {...layout.legend, orientation: "h", x: 0, xanchor: "left", y: -0.2, yanchor: "top"};
      layout.height += 26 * lines;
      layout.margin = {...layout.margin, b: layout.margin.b + 26 * lines, l: 40, r: 8};
    }
    return layout;
  }

  // plotly.js lies in the page packed (embed.py); nothing is loaded from anywhere.
  async function unpack() {
    const packed = Uint8Array.from(atob(document.getElementById("library").textContent), (one) => one.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    const library = document.createElement("script");
    library.textContent = await new Response(stream).text();
    document.head.append(library);
  }
  const unpacked = unpack();

  async function draw(place) {
    const figure = figures[place.dataset.figure];
    place.setAttribute("role", "img");
    if (!figure) {
      place.textContent = "No figure: nothing was measured.";
      place.style.height = "";
      return 0;
    }
    place.setAttribute("aria-label", figure.layout.meta.caption);
    await unpacked;
    if (place.classList.contains("fixed")) {
      place.style.width = figure.layout.meta.width + "px";
    }
    const layout = fit(figure, place.clientWidth);
    place.style.height = layout.height + "px";
    await Plotly.react(place, figure.data, layout, config);
    return 1;
  }

  const pause = () => new Promise((resolve) => setTimeout(resolve, 0));

  async function drawAll() {
    let count = 0;
    for (const place of document.querySelectorAll(".plot")) {
      try {
        count += await draw(place);
      } catch (error) {
        window.hakmemError(error);
        place.textContent = "This figure could not be drawn.";
      }
      await pause();
    }
    root.dataset.plots = String(count);
    root.dataset.ready = "1";
  }

  const select = document.getElementById("choose-row");
  if (select) {
    select.addEventListener("change", async () => {
      await unpacked;
      for (const kind of ["scatter", "curve"]) {
        const place = document.getElementById("chosen-" + kind);
        place.dataset.figure = kind + "-" + select.value;
        Plotly.purge(place);
        place.textContent = "";
        draw(place).catch(window.hakmemError);
      }
      document.getElementById("chosen-link").href = "#row-" + select.value;
    });
  }

  window.addEventListener("beforeprint", () => {
    for (const place of document.querySelectorAll(".js-plotly-plot:not(.fixed)")) {
      Plotly.Plots.resize(place);
    }
  });
  drawAll().catch(window.hakmemError);
})();
