import { providerErrorIn } from '../interrupts/provider-error.ts';
import { isObject, parsedJson } from '../json.ts';
import { inTime, type Time } from '../time.ts';
import type { Refusal } from './attempt.ts';
import type { AttemptReport } from './attempt-report.ts';
import type { Client, Outcome, Target } from './run.ts';
import type { Turn } from './turn.ts';
import type { Wire } from './wires/wire.ts';

/** What the client waits at most for a store that is slow. */
const CLOSE_WAIT_MAX_MS = 1000;

/**
 * Answers a client that did not ask for a stream in the way of a target that gives none. `undefined` where the attempt
 * is to be taken like any other: the client asked for a stream, or has something of the answer, or the target is not of
 * that kind.
 */
export async function withoutStream(
  turn: Turn,
  { begun, unstreamed }: Client,
  target: Target,
  { refusal }: AttemptReport,
  time: Time,
): Promise<Outcome | undefined> {
  if (!unstreamed || !refusal || begun) return undefined;
  const isAnswered = isAnswer(refusal, turn.run.wire);
  if (!isAnswered && !refusesToStream(refusal)) return undefined;
  if (isAnswered) unstreamed.answer(target, refusal);
  else unstreamed.passOn(target);
  // The journal has nothing of it: whoever sends the request again is to be answered anew.
  await inTime(turn.close({ status: 'cancelled' }), time, CLOSE_WAIT_MAX_MS);
  return isAnswered ? 'complete' : 'rejected';
}

function isAnswer({ status, body }: Refusal, wire: Wire): boolean {
  if (status !== 200) return false;
  const answer = parsedJson(new TextDecoder().decode(body));
  return isObject(answer) && !providerErrorIn(answer) && wire.document.isAnswer(answer);
}

const REFUSALS: ReadonlySet<number> = new Set([400, 404, 405, 422, 501]);
/** Whoever quotes that sentence of another provider may do so at some length. */
const LOOKED_AT_BYTES = 16_384;

/**
 * `stream`, or an option of it, is named as what is wrong: "Your organization must be verified to stream this model".
 * Taken too widely it costs one request more.
 */
const refusesToStream = ({ status, body }: Refusal): boolean =>
  REFUSALS.has(status) && /\bstream/i.test(Buffer.from(body).toString('utf8', 0, LOOKED_AT_BYTES));
