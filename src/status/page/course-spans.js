/**
 * A run's course as spans on its own time axis, `{kind, start, size}` from 0 to 1. Kinds: `elsewhere` (on the replica
 * that began it), `asking`, `answering`, `gap` (from an interruption until the answer continues) and `open` (a gap
 * without such an end).
 */
export function courseSpans({ course, created_at_ms, taken_over, ended_at_ms }, now_ms) {
  const to_ms = Math.max(ended_at_ms ?? now_ms, course.at(-1)[1]);
  const from_ms = taken_over ? Math.min(created_at_ms, course[0][1]) : course[0][1];
  const length_ms = Math.max(1, to_ms - from_ms);
  const spans = [];
  const add = (kind, begin_ms, end_ms) => {
    if (end_ms <= begin_ms) return;
    spans.push({ kind, start: (begin_ms - from_ms) / length_ms, size: (end_ms - begin_ms) / length_ms });
  };
  add('elsewhere', from_ms, course[0][1]);
  let gap_ms;
  for (const [index, [state, at_ms]] of course.entries()) {
    const next_ms = course[index + 1]?.[1] ?? to_ms;
    if (state === 'interrupted') gap_ms ??= at_ms;
    if (gap_ms !== undefined && (state === 'answering' || state === 'finishing')) {
      add('gap', gap_ms, at_ms);
      gap_ms = undefined;
    }
    if (gap_ms === undefined && state !== 'ended')
      add(state === 'asking' ? 'asking' : 'answering', at_ms, next_ms);
  }
  if (gap_ms !== undefined) add('open', gap_ms, to_ms);
  return spans;
}
