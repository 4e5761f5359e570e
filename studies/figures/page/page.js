// Draws the figures that the page carries as JSON, in the colours of the page, and again when those change.
"use strict";
(() => {
  const figures = JSON.parse(document.getElementById("figures").textContent);
  const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  function colors(layout) {
    const changes = {
      "font.color": color("--soft"),
      "modebar.bgcolor": "rgba(0,0,0,0)",
      "modebar.color": color("--faint"),
      "modebar.activecolor": color("--ink"),
      "hoverlabel.bgcolor": color("--card"),
      "hoverlabel.bordercolor": color("--axis"),
      "hoverlabel.font.color": color("--ink"),
    };
    for (const axis of Object.keys(layout).filter((key) => /^[xy]axis\d*$/.test(key))) {
      changes[`${axis}.gridcolor`] = color("--grid");
      changes[`${axis}.linecolor`] = color("--axis");
      changes[`${axis}.zerolinecolor`] = color("--axis");
    }
    for (const index of (layout.annotations ?? []).keys()) {
      changes[`annotations[${index}].bgcolor`] = color("--card");
    }
    return changes;
  }

  function themed(layout) {
    for (const [path, value] of Object.entries(colors(layout))) {
      const keys = path.split(/[.[\]]+/);
      const last = keys.pop();
      keys.reduce((inner, key) => (inner[key] ??= {}), layout)[last] = value;
    }
    return layout;
  }

  const settings = { responsive: true, displaylogo: false, modeBarButtons: [["toImage", "resetScale2d"]] };

  async function draw(name) {
    const place = document.getElementById(`figure-${name}`);
    const { data, layout } = figures[name];
    try {
      await Plotly.newPlot(place, data, themed(layout), settings);
      place.dataset.drawn = "yes";
    } catch (error) {
      place.textContent = `This figure could not be drawn here: ${error.message ?? error}`;
      place.className = "undefined";
      throw error;
    }
  }

  async function drawAll() {
    // One after the other, so that a large page stays usable while it draws.
    for (const name of Object.keys(figures)) {
      await draw(name);
      await new Promise((resume) => setTimeout(resume));
    }
    document.documentElement.dataset.drawn = "all";
  }

  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    for (const place of document.querySelectorAll("[data-drawn=yes]")) {
      Plotly.relayout(place, colors(place.layout));
    }
  });
  drawAll();
})();
