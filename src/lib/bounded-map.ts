/** Adds `value` as the youngest entry. Above `entries_max`, the oldest entry is dropped. */
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
