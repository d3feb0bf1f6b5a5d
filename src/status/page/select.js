/** A comparison by the items' text. */
export const byText = (textOf) => (one, other) => {
  const [text, otherText] = [textOf(one), textOf(other)];
  return text < otherText ? -1 : text > otherText ? 1 : 0;
};

/** The selected items of a list in the selected order. */
export function select({ kinds, orders, textOf, begun, all }, model, { kind, find, sort, descending }) {
  const isOfKind = kinds[kind] ?? kinds.all;
  const needle = find.trim().toLowerCase();
  const selected = all(model).filter(
    (each) => isOfKind(each) && (needle === '' || textOf(each).toLowerCase().includes(needle)),
  );
  if (sort === 'given') return selected;
  const direction = descending ? -1 : 1;
  // Equal items stay in the order in which they began, because rows that keep changing places are unreadable.
  return selected.sort((one, other) => direction * orders[sort](one, other) || begun(one) - begun(other));
}
