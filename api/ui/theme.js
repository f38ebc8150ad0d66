// theme.js - light or dark as chosen here before; in front of the first paint, so nothing flashes.
try {
  document.documentElement.dataset.theme = localStorage.getItem('pawl-theme') || '';
} catch { /* no storage: as the system says */ }
