/** An order by what is said of two of them. */
export const byText = (textOf) => (one, other) => {
  const [text, otherText] = [textOf(one), textOf(other)];
  return text < otherText ? -1 : text > otherText ? 1 : 0;
};

/** Those of a list that are asked for, in the order asked for. */
export function select({ kinds, orders, textOf, begun, all }, model, { kind, find, sort, descending }) {
  const isOfKind = kinds[kind] ?? kinds.all;
  const needle = find.trim().toLowerCase();
  const selected = all(model).filter(
    (each) => isOfKind(each) && (needle === '' || textOf(each).toLowerCase().includes(needle)),
  );
  if (sort === 'given') return selected;
  const direction = descending ? -1 : 1;
  // Those that are equal stay in the order in which they began: rows that change places for nothing cannot be read.
  return selected.sort((one, other) => direction * orders[sort](one, other) || begun(one) - begun(other));
}
