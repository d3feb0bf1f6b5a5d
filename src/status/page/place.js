/** Places a mark on an axis. `start` and `size` are shares of the axis. */
export function place(node, start, size) {
  const [from, length] = [percent(start), percent(size)];
  if (node.style.insetInlineStart !== from) node.style.insetInlineStart = from;
  if (node.style.inlineSize !== length) node.style.inlineSize = length;
}

const percent = (share) => `${(100 * share).toFixed(2)}%`;
