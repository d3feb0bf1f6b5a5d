import type { Answer } from './audience.ts';
import { describe, type Refusal } from './newcomers.ts';
import { faultOf, partFaultOf, readWhat } from './questions.ts';

/** A replica that was told to go, by `performance.now()`. */
export interface Departure {
  readonly slot: string;
  readonly told_ms: number;
  /** No stream of it may be cut before. */
  readonly grace_ms: number;
}

/** How the answers of one kind of client ended. */
export interface Tally {
  whole: number;
  /** Not before the grace of their replica was over, and as an error. */
  cut: number;
  /** The soonest that one was cut after its replica had been told to go. */
  cut_after_ms: number;
  readonly faults: string[];
}

/** Timers of another process that rounds its milliseconds. */
const TOLERANCE_MS = 5;
/** What a request gets that has no answer yet when its replica hands over. */
const SENT_AWAY = 503;
/** How long after its grace a replica may cut off what is left. */
const CUT_MAX_MS = 10_000;

/**
 * Whether a request had begun before a replica refused any, and was cut off, or sent away, when its grace was over: it
 * was not too late, but too slow.
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

/** By kind of client. Only those in `mayBeCut` may have been told less than everything. */
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

/** How long before its end the replica of an answer was told to go; undefined when its grace was not over. */
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
