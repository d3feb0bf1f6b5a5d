/** An element of the page's own markup. */
export const byId = (id) => document.getElementById(id);

/** Creates an element. Foreign text enters the page as text, never as markup. */
export function element(name, properties = {}, ...children) {
  const made = document.createElement(name);
  const { data = {}, ...others } = properties;
  Object.assign(made, others);
  Object.assign(made.dataset, data);
  made.append(...children);
  return made;
}

/** Writes only if the text differs, so that unchanged text causes no layout, announcement or loss of selection. */
export function write(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/** A coloured word. The colour adds no information. */
export const chip = (text, tone) => element('span', { className: 'chip', data: { tone } }, text);
