import { providerErrorIn } from '../../interrupts/provider-error.ts';
import { isObject, parsedJson } from '../../lib/json.ts';
import { inTime, type Time } from '../../lib/time.ts';
import type { Outcome } from '../../plans/outcome.ts';
import type { Client } from '../downstream/client.ts';
import type { Refusal } from '../upstream/refusal.ts';
import type { Target } from '../upstream/target.ts';
import type { Wire } from '../wires/common/wire.ts';
import type { RunState } from './run-state.ts';

/** How long the client waits for a slow store. */
const CLOSE_WAIT_MAX_MS = 1000;

/**
 * Answers a client without a stream through a target that does not stream either. `undefined` if the refusal must be
 * handled like any other: the client asked for a stream or has part of the answer, or the target does stream.
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
  // The journal doesn't contain this answer, so a repeated request must be answered anew.
  await inTime(state.close({ status: 'cancelled' }), time, CLOSE_WAIT_MAX_MS);
  return isAnswered ? 'complete' : 'rejected';
}

function isAnswer({ status, body }: Refusal, wire: Wire): boolean {
  if (status !== 200) return false;
  const answer = parsedJson(new TextDecoder().decode(body));
  return isObject(answer) && !providerErrorIn(answer) && wire.document.isAnswer(answer);
}

const REFUSALS: ReadonlySet<number> = new Set([400, 404, 405, 422, 501]);
/** A gateway may quote the provider's message within a long one. */
const LOOKED_AT_BYTES = 16_384;

/**
 * The message blames `stream` or one of its options, e.g. "Your organization must be verified to stream this model". A
 * false match costs one extra request.
 */
const refusesToStream = ({ status, body }: Refusal): boolean =>
  REFUSALS.has(status) && /\bstream/i.test(Buffer.from(body).toString('utf8', 0, LOOKED_AT_BYTES));
