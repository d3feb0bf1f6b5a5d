/**
 * The phases of a step: `asking` until an attempt produces something, `answering`, and `gap` from an interruption until
 * the answer continues. `attempt` and `interrupted` are the timeline entries.
 */
export function spansOf({ stays }, now_ms) {
  const spans = [];
  for (const { timeline, created_at_ms, ended_at_ms } of stays) {
    let open = { kind: 'asking', from_ms: timeline[0]?.at_ms ?? created_at_ms };
    const begin = (at_ms, span) => {
      if (open && at_ms > open.from_ms) spans.push({ ...open, to_ms: at_ms });
      open = span && { ...span, from_ms: at_ms };
    };
    let attempt;
    for (const entry of timeline) {
      const { kind, at_ms } = entry;
      if (kind === 'attempt') {
        attempt = entry;
        if (open?.kind !== 'gap') begin(at_ms, { kind: 'asking', attempt });
      } else if (kind === 'answering') begin(at_ms, { kind: 'answering', attempt });
      else if (kind === 'interrupted') begin(at_ms, { kind: 'gap', interrupted: entry });
      else if (kind === 'whole' || kind === 'ended') begin(at_ms);
    }
    if (open) begin(ended_at_ms ?? now_ms);
  }
  return spans;
}
