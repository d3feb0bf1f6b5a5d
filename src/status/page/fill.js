import { byId } from './elements.js';

/** Rows of one table, `{text, make}`, made anew only when they say something else. */
export function fill(id, rows) {
  const table = byId(id);
  const text = JSON.stringify(rows.map(({ text }) => text));
  if (table.dataset.text === text) return;
  table.dataset.text = text;
  table.tBodies[0].replaceChildren(...rows.map(({ make }) => make()));
  table.hidden = rows.length === 0;
}
