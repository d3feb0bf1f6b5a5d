/** An element of the page's own markup. */
export const byId = (id) => document.getElementById(id);

/** A new element. What others have written gets into the page as text, never as markup. */
export function element(name, properties = {}, ...children) {
  const made = document.createElement(name);
  const { data = {}, ...others } = properties;
  Object.assign(made, others);
  Object.assign(made.dataset, data);
  made.append(...children);
  return made;
}

/** Writes only what differs: nothing is laid out, announced or selected anew for a text that stays. */
export function write(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/** A word with a colour of its own, which says nothing that the word does not. */
export const chip = (text, tone) => element('span', { className: 'chip', data: { tone } }, text);
