// Before anything is painted: a page that was dark does not flash up white.
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
        // Where nothing may be kept, it is chosen anew each time.
      }
    });
  });
})();
