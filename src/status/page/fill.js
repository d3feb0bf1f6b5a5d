import { byId } from './elements.js';

/** Fills a table with rows `{text, make}`, which are recreated only if a text has changed. */
export function fill(id, rows) {
  const table = byId(id);
  const text = JSON.stringify(rows.map(({ text }) => text));
  if (table.dataset.text === text) return;
  table.dataset.text = text;
  table.tBodies[0].replaceChildren(...rows.map(({ make }) => make()));
  table.hidden = rows.length === 0;
}
