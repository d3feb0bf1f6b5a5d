/**
 * Reads one document at a time, and of what is asked for meanwhile only the last: `show` gets a document that is still
 * wanted, and `gone` is called where there is none any more.
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
      // The connection is lost, and the page says so.
    } finally {
      asking = false;
      if (id !== wanted) void read();
    }
  };
}
