/** There is no room for more attempts. */
const LANES_MAX = 12;

/**
 * A run's events on a linear time axis. `lanes`: one per attempt, with `bars` for the time spent `asking` and
 * `answering`, its `outcome`, how it was `interrupted`, the `seam` that joined it, and the `gap` that began with its
 * end; `isHealed` if the answer continued. `handovers`: when the run changed replicas. `omitted`: number of lanes left
 * out.
 */
export function runAxis({ timeline, created_at_ms, ended_at_ms }, now_ms) {
  const lanes = [];
  const handovers = [];
  let lane;
  let gap;
  for (const entry of timeline) {
    const { kind, at_ms } = entry;
    if (kind === 'taken_over') {
      lane = { bars: [{ kind: 'elsewhere', from_ms: created_at_ms }], outcome: 'elsewhere' };
      lanes.push(lane);
      handovers.push({ at_ms, entry });
    } else if (kind === 'attempt') {
      close(lane, at_ms);
      const { attempt, upstream, model, mode } = entry;
      lane = {
        attempt,
        upstream,
        model,
        mode,
        bars: [{ kind: 'asking', from_ms: at_ms }],
        outcome: 'asking',
      };
      lanes.push(lane);
    } else if (kind === 'answering' && lane) {
      close(lane, at_ms);
      lane.bars.push({ kind: 'answering', from_ms: at_ms });
      lane.outcome = 'answering';
      if (gap) {
        Object.assign(gap, { to_ms: at_ms, isHealed: true });
        lane.joined_at_ms = at_ms;
      }
      gap = undefined;
    } else if (kind === 'interrupted' && lane) {
      close(lane, at_ms);
      Object.assign(lane, { outcome: 'interrupted', interrupted: entry, seam: entry.seam });
      if (!gap) lane.gap = { from_ms: at_ms, isHealed: false };
      gap ??= lane.gap;
    } else if (kind === 'planned' && gap && (entry.plan === 'R2' || entry.plan === 'finish')) {
      Object.assign(gap, { to_ms: at_ms, isHealed: true });
      gap = undefined;
    } else if (kind === 'whole' && lane) {
      close(lane, at_ms);
      Object.assign(lane, { outcome: 'whole', seam: entry.seam });
    } else if (kind === 'ended') {
      if (entry.outcome === 'handed_over' || entry.outcome === 'superseded') handovers.push({ at_ms, entry });
    }
  }
  const to_ms = Math.max(ended_at_ms ?? now_ms, timeline.at(-1)?.at_ms ?? 0);
  close(lane, to_ms);
  if (gap) gap.to_ms = to_ms;
  const from_ms = Math.min(created_at_ms, timeline[0]?.at_ms ?? created_at_ms);
  return {
    from_ms,
    to_ms,
    lanes: lanes.slice(-LANES_MAX),
    omitted: Math.max(0, lanes.length - LANES_MAX),
    handovers,
    at: (ms) => Math.min(1, Math.max(0, (ms - from_ms) / Math.max(1, to_ms - from_ms))),
  };
}

/** Ends a lane's last bar, unless it has already ended. */
function close(lane, at_ms) {
  const bar = lane?.bars.at(-1);
  if (bar) bar.to_ms ??= at_ms;
}

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const STEPS_MS = [
  ...[1, 2, 5, 10, 20, 50, 100, 200, 500],
  ...[1, 2, 5, 10, 15, 30].map((step) => step * SECOND),
  ...[1, 2, 5, 10, 15, 30].map((step) => step * MINUTE),
  ...[1, 2, 6, 12, 24].map((step) => step * HOUR),
];

/** Round times from 0 to `length_ms`, few enough to leave room for their labels. */
export function ticksOf(length_ms, most = 5) {
  const step_ms =
    STEPS_MS.find((step) => length_ms / step < most) ?? Math.ceil(length_ms / most / HOUR) * HOUR;
  return Array.from({ length: Math.floor(length_ms / step_ms) + 1 }, (_, index) => index * step_ms);
}
