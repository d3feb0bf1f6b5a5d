/** Maximum displayed length of all long idle periods together and of a single one, as a share of the busy time. */
const RESTS_SHARE = 0.5;
const REST_SHARE = 0.2;

/**
 * A common axis for time spans `{from_ms, to_ms}`. Long idle periods are shortened, so that the steps of a task left
 * overnight stay visible. `at` maps a time to 0 to 1; `cuts` are the shortened periods.
 */
export function timeAxis(spans) {
  const busy = merged(spans);
  const busy_ms = busy.reduce((sum, { from_ms, to_ms }) => sum + to_ms - from_ms, 0);
  const rests = busy.slice(1).map(({ from_ms }, index) => ({ from_ms: busy[index].to_ms, to_ms: from_ms }));
  const rest_ms_max = longestShown(rests, busy_ms);
  const stretches = [];
  let shown_ms = 0;
  for (const [index, span] of busy.entries()) {
    for (const stretch of index > 0 ? [rests[index - 1], span] : [span]) {
      const length_ms = stretch.to_ms - stretch.from_ms;
      const isCut = stretch !== span && length_ms > rest_ms_max;
      const width_ms = isCut ? rest_ms_max : length_ms;
      stretches.push({ ...stretch, isCut, start_ms: shown_ms, width_ms });
      shown_ms += width_ms;
    }
  }
  const whole_ms = Math.max(1, shown_ms);
  return {
    at(ms) {
      const stretch = stretches.find(({ to_ms }) => ms <= to_ms) ?? stretches.at(-1);
      const length_ms = Math.max(1, stretch.to_ms - stretch.from_ms);
      const share = Math.min(1, Math.max(0, (ms - stretch.from_ms) / length_ms));
      return (stretch.start_ms + share * stretch.width_ms) / whole_ms;
    },
    cuts: stretches
      .filter(({ isCut }) => isCut)
      .map(({ from_ms, to_ms, start_ms, width_ms }) => ({
        start: start_ms / whole_ms,
        width: width_ms / whole_ms,
        rest_ms: to_ms - from_ms,
      })),
  };
}

function longestShown(rests, busy_ms) {
  const fair_ms = (RESTS_SHARE * busy_ms) / rests.length;
  const long = rests.filter(({ from_ms, to_ms }) => to_ms - from_ms > fair_ms).length;
  return Math.max(1, busy_ms * Math.min(REST_SHARE, RESTS_SHARE / long));
}

/** Merges adjoining spans, oldest first. */
function merged(spans) {
  const all = [];
  for (const { from_ms, to_ms } of spans.toSorted((one, other) => one.from_ms - other.from_ms)) {
    const last = all.at(-1);
    if (last && from_ms <= last.to_ms) last.to_ms = Math.max(last.to_ms, to_ms);
    else all.push({ from_ms, to_ms });
  }
  return all;
}
