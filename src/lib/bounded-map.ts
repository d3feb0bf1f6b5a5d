/** Puts `value` into a map as its youngest entry. Beyond `entries_max` of them, the oldest one is forgotten. */
export function remember<Key, Value>(
  entries: Map<Key, Value>,
  key: Key,
  value: Value,
  entries_max: number,
): void {
  entries.delete(key);
  entries.set(key, value);
  const [oldest] = entries.keys();
  if (entries.size > entries_max && oldest !== undefined) entries.delete(oldest);
}
