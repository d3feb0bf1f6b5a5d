/**
 * Keeps elements in step with a list without recreating them: each key's element is created once. `slots`: the live
 * collection of all elements, which belong to this function alone.
 */
export function keyed({ parent, slots, keyOf, create, show, fallback }) {
  const made = new Map();
  return (items, ...context) => {
    const focused = document.activeElement;
    const focusedIndex = [...slots].findIndex((slot) => slot.contains(focused));
    const wanted = new Set(items.map(keyOf));
    for (const [key, slot] of made) {
      if (wanted.has(key)) continue;
      slot.remove();
      made.delete(key);
    }
    for (const [index, item] of items.entries()) {
      const slot = made.get(keyOf(item)) ?? create(item);
      made.set(keyOf(item), slot);
      show(slot, item, ...context);
      if (slots[index] !== slot) parent.insertBefore(slot, slots[index] ?? null);
    }
    if (focusedIndex !== -1) keepFocus(focused, slots[Math.min(focusedIndex, slots.length - 1)] ?? fallback);
  };
}

/** A moved row loses the focus and a removed one takes it away, which would send keyboard users back to the top. */
function keepFocus(focused, near) {
  if (document.activeElement === focused) return;
  const target = focused.isConnected ? focused : (near.querySelector('button') ?? near);
  target.focus({ preventScroll: true });
}

/** Arrow keys move between the buttons that open the table's rows. */
export function listenToArrows(table) {
  table.addEventListener('keydown', (event) => {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const buttons = [...table.querySelectorAll('tbody .run')];
    const near = buttons[buttons.indexOf(event.target) + by];
    if (!by || !near || !buttons.includes(event.target)) return;
    event.preventDefault();
    near.focus();
  });
}
