// Runs before the first paint, so that a dark page doesn't flash white.
(() => {
  const KEY = 'holdfast-theme';
  const chosen = () => {
    try {
      return localStorage.getItem(KEY) ?? 'auto';
    } catch {
      return 'auto';
    }
  };
  const show = (theme) => {
    if (theme === 'auto') delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
  };
  show(chosen());
  addEventListener('DOMContentLoaded', () => {
    const select = document.getElementById('theme');
    select.value = chosen();
    select.addEventListener('change', () => {
      show(select.value);
      try {
        localStorage.setItem(KEY, select.value);
      } catch {
        // If storage isn't available, the choice isn't kept.
      }
    });
  });
})();
