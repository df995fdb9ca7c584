"use strict";
(() => {
  const root = document.documentElement;
  const all = (what, where = document) => [...where.querySelectorAll(what)];

  // Theme: the system's, until somebody presses the button.
  const button = document.querySelector(".theme");
  const system = matchMedia("(prefers-color-scheme: dark)");
  const dark = () => (root.dataset.theme || (system.matches ? "dark" : "light")) === "dark";
  const label = () => { button.textContent = dark() ? "Light" : "Dark"; };
  let kept = null;
  try { kept = localStorage.getItem("vnt-theme"); } catch { /* storage may be forbidden */ }
  if (kept === "dark" || kept === "light") root.dataset.theme = kept;
  button.hidden = false;
  label();
  system.addEventListener("change", label);
  button.addEventListener("click", () => {
    root.dataset.theme = dark() ? "light" : "dark";
    try { localStorage.setItem("vnt-theme", root.dataset.theme); } catch { /* as above */ }
    label();
  });

  // Tables: numbers by value, texts by letters, empty places last in both directions.
  const key = (row, column) => {
    const cell = row.cells[column];
    if (cell.dataset.v !== undefined) return Number(cell.dataset.v);
    return cell.textContent === "" ? null : cell.textContent;
  };
  const compare = (a, b) => {
    if (typeof a === "number" && typeof b === "number") return a - b;
    if (typeof a !== typeof b) return typeof a === "number" ? -1 : 1;
    return a.localeCompare(b, "en", { numeric: true });
  };
  document.addEventListener("click", (event) => {
    const pressed = event.target.closest("thead button");
    if (!pressed) return;
    const head = pressed.parentElement, table = head.closest("table");
    const down = head.getAttribute("aria-sort") === "ascending";
    for (const other of head.parentElement.cells) {
      if (other.hasAttribute("aria-sort")) other.setAttribute("aria-sort", "none");
    }
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const body = table.tBodies[0];
    const rows = [...body.rows].map((row, place) => ({ row, place, key: key(row, head.cellIndex) }));
    rows.sort((a, b) => {
      if (a.key === null || b.key === null) {
        return (a.key === null) - (b.key === null) || a.place - b.place;
      }
      return (down ? -1 : 1) * compare(a.key, b.key) || a.place - b.place;
    });
    body.append(...rows.map((one) => one.row));
  });

  // Values: under the pointer, or by the arrow keys when a chart has the focus.
  const tip = document.getElementById("tip");
  const NS = "http://www.w3.org/2000/svg";
  const spots = new WeakMap();
  const spotsOf = (svg) => {
    if (spots.has(svg)) return spots.get(svg);
    const found = [];
    for (const group of all("[data-p]", svg)) {
      const xs = (group.dataset.x || "").split("|"), values = (group.dataset.v || "").split("|");
      group.dataset.p.split(" ").forEach((pair, k) => {
        if (!pair) return;
        const [x, y] = pair.split(",").map(Number);
        const said = values[k] ? `: ${values[k]}` : "";
        const at = xs[k] ? `, ${svg.dataset.xlabel || ""} ${xs[k]}`.replace(",  ", ", ") : "";
        found.push({ x, y, text: `${group.dataset.n}${at}${said}`, point: true });
      });
    }
    for (const map of all("[data-grid]", svg)) {
      const [left, top, side] = map.dataset.grid.split(" ").map(Number);
      const rows = map.dataset.rows.split("|"), columns = map.dataset.columns.split("|");
      map.dataset.v.split("|").forEach((line, i) => line.split(" ").forEach((value, j) => {
        if (!value) return;
        const box = { x: left + side * j, y: top + side * i, width: side, height: side };
        found.push({ x: box.x + side / 2, y: box.y + side / 2, text: `${rows[i]}, ${columns[j]}: ${value}`, box });
      }));
    }
    spots.set(svg, found);
    return found;
  };
  const place = (svg, spot) => {
    const matrix = svg.getScreenCTM();
    const at = new DOMPoint(spot.x, spot.y).matrixTransform(matrix);
    tip.textContent = spot.text;
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    const left = Math.min(Math.max(4, at.x - box.width / 2), innerWidth - box.width - 4);
    const above = at.y - box.height - 14;
    tip.style.transform = `translate(${left}px,${above < 4 ? at.y + 18 : above}px)`;
    ring(svg, spot);
  };
  const ring = (svg, spot) => {
    for (const old of all(".here")) old.remove();
    if (!spot) return;
    let shape;
    if (spot.box) {
      shape = document.createElementNS(NS, "rect");
      for (const name of ["x", "y", "width", "height"]) shape.setAttribute(name, spot.box[name]);
    } else {
      shape = document.createElementNS(NS, "circle");
      shape.setAttribute("cx", spot.x);
      shape.setAttribute("cy", spot.y);
      shape.setAttribute("r", 6.5);
    }
    shape.setAttribute("class", "here");
    shape.setAttribute("pointer-events", "none");
    svg.append(shape);
  };
  let focused = null; // the chart and place that the keyboard points at
  const hide = () => { tip.hidden = true; focused = null; ring(); };
  const near = (svg, event) => {
    const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
    let best = null, least = 28 ** 2;
    for (const spot of spotsOf(svg)) {
      const box = spot.box;
      if (box && box.x <= at.x && at.x < box.x + box.width && box.y <= at.y && at.y < box.y + box.height) return spot;
      if (!spot.point) continue;
      const gap = (spot.x - at.x) ** 2 + (spot.y - at.y) ** 2;
      if (gap < least) { least = gap; best = spot; }
    }
    return best;
  };
  for (const svg of all("svg.chart")) {
    let now = -1;
    const pointAt = () => { focused = [svg, spotsOf(svg)[now]]; place(...focused); };
    const point = (event) => {
      const spot = near(svg, event);
      if (spot) place(svg, spot); else hide();
    };
    svg.addEventListener("pointermove", point);
    svg.addEventListener("pointerdown", point);
    svg.addEventListener("pointerleave", hide);
    svg.addEventListener("blur", () => { now = -1; hide(); });
    svg.addEventListener("focus", () => {
      if (svg.matches(":focus-visible") && spotsOf(svg).length) { now = 0; pointAt(); }
    });
    svg.addEventListener("keydown", (event) => {
      const list = spotsOf(svg);
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (event.key === "Escape") hide();
      if (!list.length) return;
      if (step) now = (now + step + list.length) % list.length;
      else if (event.key === "Home") now = 0;
      else if (event.key === "End") now = list.length - 1;
      else return;
      event.preventDefault();
      pointAt();
    });
  }
  addEventListener("scroll", () => { if (focused) place(...focused); else hide(); }, { passive: true });

  // Legend: pointing at a name (or pressing it) dims the other series.
  const light = (figure, name) => {
    figure.classList.toggle("dim", name !== null);
    for (const group of all(".series", figure)) group.classList.toggle("lit", group.dataset.n === name);
  };
  for (const legend of all(".legend")) {
    const figure = legend.closest("figure");
    const pressed = () => legend.querySelector("[aria-pressed=true]");
    const rest = () => light(figure, pressed() ? pressed().dataset.n : null);
    for (const entry of all("button", legend)) {
      entry.addEventListener("pointerenter", () => light(figure, entry.dataset.n));
      entry.addEventListener("pointerleave", rest);
      entry.addEventListener("click", () => {
        const was = entry.getAttribute("aria-pressed") === "true";
        for (const other of all("button", legend)) other.setAttribute("aria-pressed", "false");
        entry.setAttribute("aria-pressed", String(!was));
        rest();
      });
    }
  }

  // Saving: title, legend and panels where they stand now, styles written out.
  const STYLES = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "stroke-opacity",
    "stroke-linejoin", "stroke-linecap", "opacity", "font-size", "font-weight", "font-family"];
  const written = (source, copy) => {
    const style = getComputedStyle(source);
    for (const name of STYLES) {
      const value = style.getPropertyValue(name);
      if (value && !(name.endsWith("opacity") && value === "1")) copy.setAttribute(name, value);
    }
    for (const { name } of [...copy.attributes]) {
      if (name === "class" || name === "tabindex" || name.startsWith("data-")) copy.removeAttribute(name);
    }
    [...source.children].forEach((child, i) => written(child, copy.children[i]));
  };
  const drawing = (figure) => {
    hide();
    const frame = figure.querySelector(".drawn").getBoundingClientRect();
    const pad = 12, out = document.createElementNS(NS, "svg");
    let width = 0, height = 0;
    const put = (element, box) => {
      element.setAttribute("x", box.left - frame.left + pad);
      element.setAttribute("y", box.top - frame.top + pad);
      width = Math.max(width, box.right - frame.left + 2 * pad);
      height = Math.max(height, box.bottom - frame.top + 2 * pad);
      out.append(element);
    };
    for (const svg of all(".drawn svg", figure)) {
      const box = svg.getBoundingClientRect(), copy = svg.cloneNode(true);
      if (!box.width) continue; // drawn for another width
      written(svg, copy);
      copy.setAttribute("width", box.width);
      copy.setAttribute("height", box.height);
      put(copy, box);
    }
    const write = (word) => {
      const text = document.createElementNS(NS, "text"), style = getComputedStyle(word);
      text.textContent = word.textContent;
      for (const name of ["font-size", "font-weight", "font-family"]) text.setAttribute(name, style.getPropertyValue(name));
      text.setAttribute("fill", style.color);
      return text;
    };
    for (const word of all(".drawn .word", figure)) {
      const text = write(word);
      put(text, word.getBoundingClientRect());
      text.setAttribute("y", Number(text.getAttribute("y")) + 0.75 * parseFloat(text.getAttribute("font-size")) + 2);
    }
    const title = write(figure.querySelector("h3")), top = -28; // above, without what stands between
    title.setAttribute("x", pad);
    title.setAttribute("y", -4);
    out.append(title);
    height -= top;
    const ground = document.createElementNS(NS, "rect");
    const sizes = { x: 0, y: top, width, height, fill: getComputedStyle(root).getPropertyValue("--ground").trim() };
    for (const [name, value] of Object.entries(sizes)) ground.setAttribute(name, value);
    out.prepend(ground);
    out.setAttribute("xmlns", NS);
    out.setAttribute("width", width);
    out.setAttribute("height", height);
    out.setAttribute("viewBox", `0 ${top} ${width} ${height}`);
    return { text: new XMLSerializer().serializeToString(out), width, height };
  };
  const give = (blob, name) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = name;
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
    root.dataset.saved = `${name} ${blob.type} ${blob.size}`;
  };
  for (const entry of all(".save button")) {
    entry.addEventListener("click", () => {
      const figure = entry.closest("figure"), name = figure.dataset.file;
      const { text, width, height } = drawing(figure);
      if (entry.dataset.as === "svg") {
        give(new Blob([text], { type: "image/svg+xml" }), `${name}.svg`);
        return;
      }
      const image = new Image();
      image.onload = () => {
        const canvas = document.createElement("canvas"), scale = 2;
        canvas.width = width * scale;
        canvas.height = height * scale;
        canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
        canvas.toBlob((blob) => give(blob, `${name}.png`), "image/png");
      };
      image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
    });
  }
})();
