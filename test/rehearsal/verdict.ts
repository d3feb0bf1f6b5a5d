import type { Answer } from './audience.ts';
import { describe, type Refusal } from './newcomers.ts';
import { faultOf, partFaultOf, readWhat } from './questions.ts';

/** A replica that received the order to stop; times are those of `performance.now()`. */
export interface Departure {
  readonly slot: string;
  readonly told_ms: number;
  /** The replica must not cut off any stream during this time. */
  readonly grace_ms: number;
}

/** How the answers to one kind of client ended. */
export interface Tally {
  whole: number;
  /** Cut off with an error, after their replica's grace period. */
  cut: number;
  /** The shortest time between the order to stop and a cut. */
  cut_after_ms: number;
  readonly faults: string[];
}

/** The timers belong to another process, which rounds to milliseconds. */
const TOLERANCE_MS = 5;
/** The status of a request without an answer when its replica hands over. */
const SENT_AWAY = 503;
/** How long after its grace period a replica may take to cut off the remaining streams. */
const CUT_MAX_MS = 10_000;

/**
 * Whether a request began before its replica refused any, but was cut off or sent away at the end of the grace period.
 * Such a request was too slow, not wrongly refused.
 */
export function isOvertaken(
  { asked_ms, ended_ms }: Refusal,
  departures: readonly Departure[],
  delay_ms: number,
): boolean {
  return departures.some(({ told_ms, grace_ms }) => {
    const over_ms = ended_ms - told_ms - grace_ms;
    return asked_ms <= told_ms + delay_ms && over_ms >= -TOLERANCE_MS && over_ms <= CUT_MAX_MS;
  });
}

/** Counts answers by kind of client. Only clients in `mayBeCut` may receive incomplete answers. */
export function tally(
  answers: readonly Answer[],
  departures: readonly Departure[],
  mayBeCut: readonly string[],
): ReadonlyMap<string, Tally> {
  const tallies = new Map<string, Tally>();
  for (const answer of answers) {
    const of_kind = tallies.get(answer.kind) ?? {
      whole: 0,
      cut: 0,
      cut_after_ms: Number.POSITIVE_INFINITY,
      faults: [],
    };
    tallies.set(answer.kind, of_kind);
    const name = `${answer.question} (${answer.kind}, run ${answer.run}, ${answer.served_by})`;
    const isCut = answer.error !== undefined || answer.status === SENT_AWAY;
    const fault = faultOfAnswer(answer, isCut && mayBeCut.includes(answer.kind));
    const after_ms = isCut ? sinceDeparture(answer, departures) : undefined;
    if (fault !== undefined) of_kind.faults.push(`${name}: ${fault}`);
    else if (!isCut) of_kind.whole++;
    else if (after_ms === undefined) of_kind.faults.push(`${name}: cut too early: ${describe(answer.error)}`);
    else {
      of_kind.cut++;
      of_kind.cut_after_ms = Math.min(of_kind.cut_after_ms, after_ms);
    }
  }
  return tallies;
}

function faultOfAnswer({ body, plan, error, status }: Answer, mayBeCut: boolean): string | undefined {
  if (mayBeCut && status === SENT_AWAY) return undefined;
  if (status !== 200) return `status ${status}: ${error === undefined ? body : describe(error)}`;
  if (mayBeCut) return partFaultOf(readWhat(body), plan);
  return error === undefined ? faultOf(readWhat(body), plan) : describe(error);
}

/**
 * The time from the order to stop until the answer's end; undefined if the answer didn't end at the end of the grace
 * period.
 */
function sinceDeparture(
  { served_by, ended_ms }: Answer,
  departures: readonly Departure[],
): number | undefined {
  const departure = departures.findLast(({ slot, told_ms }) => slot === served_by && told_ms <= ended_ms);
  if (!departure) return undefined;
  const since_ms = ended_ms - departure.told_ms;
  const over_ms = since_ms - departure.grace_ms;
  return over_ms >= -TOLERANCE_MS && over_ms <= CUT_MAX_MS ? since_ms : undefined;
}
