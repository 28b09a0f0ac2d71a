(() => {
  const tip = document.getElementById("tip");
  const hide = () => { tip.hidden = true; };
  const show = (spot, event) => {
    tip.replaceChildren(...spot.dataset.tip.split("\n").map((line) => {
      const row = document.createElement("div");
      row.textContent = line;
      return row;
    }));
    tip.hidden = false;
    const box = spot.getBoundingClientRect();
    const wide = tip.offsetWidth, tall = tip.offsetHeight;
    const x = event.clientX ?? box.left, y = event.clientY ?? box.top;
    tip.style.left = Math.max(8, Math.min(x + 14, window.innerWidth - wide - 8)) + "px";
    tip.style.top = (y + tall + 24 > window.innerHeight ? Math.max(8, y - tall - 14) : y + 14) + "px";
  };
  for (const spot of document.querySelectorAll(".spot[data-tip]")) {
    spot.addEventListener("pointerenter", (event) => show(spot, event));
    spot.addEventListener("pointerleave", hide);
    spot.addEventListener("focus", (event) => show(spot, event));
    spot.addEventListener("blur", hide);
  }
  window.addEventListener("scroll", hide, { passive: true });
  window.addEventListener("keydown", (event) => {
    if (event.key === "Escape") { hide(); if (location.hash.startsWith("#c-")) location.hash = "#_"; }
  });
})();
