import type { Cause } from '../interrupts/interruption.ts';
import { isObject } from '../lib/json.ts';
import { OUTCOMES, type Outcome } from '../plans/outcome.ts';
import { durationText } from './run-text.ts';
import { type Paint, printable, type Style } from './terminal.ts';

export type Fields = Readonly<Record<string, unknown>>;

/** The mark, colour and default text of each outcome. */
const MARKS: Readonly<Record<Outcome, readonly [mark: string, style: Style, says: string]>> = {
  complete: ['✔', 'green', ''],
  recovered: ['✔', 'green', 'rescued'],
  salvaged: ['✔', 'green', 'rescued'],
  replayed: ['✔', 'green', 'replayed'],
  failed: ['✖', 'red', 'failed'],
  rejected: ['✖', 'red', 'rejected'],
  cancelled: ['–', 'dim', 'cancelled'],
  superseded: ['→', 'yellow', 'taken over elsewhere'],
  handed_over: ['→', 'yellow', 'handed over'],
};

const CAUSES: Readonly<Record<Cause, string>> = {
  connection_reset: 'reset',
  idle_stall: 'stall',
  goaway: 'goaway',
  provider_5xx: 'provider error',
  rate_limited: 'rate limit',
  context_overflow: 'context too long',
  invalid_request: 'request refused',
  unauthorised: 'key refused',
  model_not_found: 'no such model',
  content_filter: 'content filter',
  quota: 'quota used up',
};

/** Evidence that is more specific than the cause. */
const EVIDENCE: ReadonlyMap<unknown, string> = new Map([
  ['replica_lost', 'replica lost'],
  ['seam_rejected', 'no seam'],
]);
/** Evidence kinds whose status comes from the provider. */
const OF_PROVIDER: ReadonlySet<unknown> = new Set(['status', 'error_event']);

/** A logged event for people. `text`: on one line. `rest`: the fields that the text doesn't cover. */
export interface ShownEvent {
  readonly text: string;
  readonly rest: Fields;
}

/**
 * Summary of a run from the log line that ends it: `✔ run_… gpt-4o-mini rescued ×2 (reset, 503) 350 chars 3.7s, gap
 * 393ms`. `undefined` if the fields aren't those of such a line.
 */
export function endedRun(fields: Fields, paint: Paint): ShownEvent | undefined {
  const { level: _level, msg: _msg, run, outcome, upstream: _upstream, ...told } = fields;
  const { model, duration_ms, characters, attempts, interruptions, gap_ms, ...rest } = told;
  if (typeof run !== 'string' || !isOutcome(outcome)) return undefined;
  const [mark, style, says] = MARKS[outcome];
  const cuts = Array.isArray(interruptions) ? interruptions.filter(isObject) : [];
  const went = wentText(outcome, says, cuts, numberIn(attempts));
  const gap = numberIn(gap_ms) > 0 ? `, gap ${durationText(numberIn(gap_ms))}` : '';
  const text = [
    paint(mark, style),
    printable(run),
    ...(typeof model === 'string' ? [printable(model)] : []),
    ...(went === '' ? [] : [paint(printable(went), style)]),
    ...(numberIn(characters) > 0 ? [`${numberIn(characters)} chars`] : []),
    durationText(numberIn(duration_ms)) + gap,
  ].join(' ');
  return { text, rest };
}

const isOutcome = (value: unknown): value is Outcome => (OUTCOMES as readonly unknown[]).includes(value);

const numberIn = (value: unknown): number => (typeof value === 'number' ? value : 0);

/** `cuts`: the interruptions. The log lists only the first few, but counts all attempts. */
function wentText(outcome: Outcome, says: string, cuts: readonly Fields[], attempts: number): string {
  switch (outcome) {
    case 'recovered':
    case 'salvaged': {
      const times = Math.max(cuts.length, attempts - 1);
      const causes = cuts.map((cut) => String(statusOf(cut) ?? causeText(cut)));
      return `${says}${times > 1 ? ` ×${times}` : ''}${causes.length > 0 ? ` (${causes.join(', ')})` : ''}`;
    }
    case 'failed':
    case 'rejected': {
      const last = cuts.at(-1);
      const why = last ? failureText(last) : says;
      // Ends with a comma, because sizes and times follow that aren't part of the reason.
      return `${why}${attempts > 1 ? `, ${attempts} attempts` : ''},`;
    }
    default:
      return says;
  }
}

/** For example, `401 from openai: key refused`. */
function failureText(cut: Fields): string {
  const status = statusOf(cut);
  const source = `from ${cut.upstream}`;
  return status === undefined ? `${causeText(cut)} ${source}` : `${status} ${source}: ${causeText(cut)}`;
}

const statusOf = ({ status, evidence }: Fields): unknown => (OF_PROVIDER.has(evidence) ? status : undefined);

function causeText({ cause, phase, evidence }: Fields): string {
  if (cause === 'connection_reset' && phase === 'connect') return 'no response';
  const name = String(cause);
  return EVIDENCE.get(evidence) ?? (Object.hasOwn(CAUSES, name) ? CAUSES[name as Cause] : name);
}
