/**
 * Reads one document at a time and remembers only the latest request in the meantime. `show` receives a document that
 * is still wanted; `gone` is called if it no longer exists.
 */
export function createReader({ pathOf, show, gone }) {
  let wanted = '';
  let asking = false;
  return async function read(id = wanted) {
    wanted = id;
    if (asking || id === '') return;
    asking = true;
    try {
      const response = await fetch(pathOf(encodeURIComponent(id)));
      const document = response.ok ? await response.json() : undefined;
      if (id !== wanted) return;
      if (document) show(document);
      else gone();
    } catch {
      // The connection is lost, which the page shows elsewhere.
    } finally {
      asking = false;
      if (id !== wanted) void read();
    }
  };
}
