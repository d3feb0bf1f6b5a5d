import { providerErrorIn } from '../../interrupts/provider-error.ts';
import { isObject, parsedJson } from '../../lib/json.ts';
import { inTime, type Time } from '../../lib/time.ts';
import type { Outcome } from '../../plans/outcome.ts';
import type { Client } from '../downstream/client.ts';
import type { Refusal } from '../upstream/refusal.ts';
import type { Target } from '../upstream/target.ts';
import type { Wire } from '../wires/common/wire.ts';
import type { RunState } from './run-state.ts';

/** What the client waits at most for a store that is slow. */
const CLOSE_WAIT_MAX_MS = 1000;

/**
 * Answers a client that did not ask for a stream in the way of a target that gives none. `undefined` where the refusal
 * is to be taken like any other: the client asked for a stream, or has something of the answer, or the target is not of
 * that kind.
 */
export async function answerWithoutStream(
  state: RunState,
  { begun, unstreamed }: Client,
  target: Target,
  refusal: Refusal,
  time: Time,
): Promise<Outcome | undefined> {
  if (!unstreamed || begun) return undefined;
  const isAnswered = isAnswer(refusal, state.run.wire);
  if (!isAnswered && !refusesToStream(refusal)) return undefined;
  if (isAnswered) unstreamed.answer(target, refusal);
  else unstreamed.passOn(target);
  // The journal does not have this answer: a repetition of the request must be answered anew.
  await inTime(state.close({ status: 'cancelled' }), time, CLOSE_WAIT_MAX_MS);
  return isAnswered ? 'complete' : 'rejected';
}

function isAnswer({ status, body }: Refusal, wire: Wire): boolean {
  if (status !== 200) return false;
  const answer = parsedJson(new TextDecoder().decode(body));
  return isObject(answer) && !providerErrorIn(answer) && wire.document.isAnswer(answer);
}

const REFUSALS: ReadonlySet<number> = new Set([400, 404, 405, 422, 501]);
/** A gateway may quote the provider's sentence within a long message. */
const LOOKED_AT_BYTES = 16_384;

/**
 * `stream`, or an option of it, is named as what is wrong: "Your organization must be verified to stream this model".
 * Taken too widely it costs one request more.
 */
const refusesToStream = ({ status, body }: Refusal): boolean =>
  REFUSALS.has(status) && /\bstream/i.test(Buffer.from(body).toString('utf8', 0, LOOKED_AT_BYTES));
