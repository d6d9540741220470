"use strict";
// Before anything is drawn: the colours that the user has chosen; without a choice those of the system.
(() => {
  try {
    const chosen = localStorage.getItem("kopt-theme");
    if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
  } catch { /* storage is switched off: the system's colours it is */ }
})();
