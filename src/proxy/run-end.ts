import type { JournalEnd } from '../checkpoint/journal-writer.ts';
import { type GiveUp, isBar } from '../plans/decide.ts';
import { failureEvent, failureResponse } from './failure.ts';
import { finalStatus } from './final-status.ts';
import { responseHeaders } from './headers.ts';
import { leaveCutNote } from './notices/left-notes.ts';
import { type Client, HAND_OVER, type Outcome, type RunContext } from './run.ts';
import type { Told } from './targets/told-failure.ts';
import { SUPERSEDED, type Turn } from './turn.ts';
import { errorBodyOn } from './wires/error-body.ts';

/** Nothing is left to try: the client is told, in the stream or instead of it. */
export async function giveUp(
  turn: Turn,
  client: Client,
  { interruption, target, report: { refusal } }: Told,
  why: GiveUp,
  context: RunContext,
): Promise<Outcome> {
  turn.watch?.planned({ plan: 'give_up', why, wait_ms: 0 });
  const status = finalStatus(interruption, turn.transcript);
  const end = { status, cause: isBar(why) ? why : interruption.cause };
  if (client.begun) {
    const { attempts, created_at_ms, delivery } = turn;
    const failure = { interruption, why, attempts, created_at_ms, stream_id: delivery.stream_id };
    // Once the client knows that this was all, nobody else may know less.
    await turn.persist();
    await leaveCutNote(turn, end, interruption, context);
    await turn.fail(failureEvent(turn.run, turn.transcript, failure));
    return close(turn, client, end, 'failed');
  }
  if (refusal && refusal.status >= 400) {
    // What the provider says to its client is for the client, word for word.
    client.reject(refusal.status, responseHeaders(refusal.headers), refusal.body);
  } else {
    const { status, body } = failureResponse({ target }, { interruption });
    const told = errorBodyOn(turn.run.wire, body);
    client.reject(status, { 'content-type': 'application/json; charset=utf-8' }, told);
  }
  return close(turn, client, end, 'rejected');
}

/** Seals the run as it ended here. */
export async function close(turn: Turn, client: Client, end: JournalEnd, outcome: Outcome): Promise<Outcome> {
  if (turn.isWithdrawn) return abandon(turn, client);
  await turn.close(end);
  return outcome;
}

/** Leaves the run to those who come after: nobody waits for it here, or it is not this replica's to end. */
export async function abandon(turn: Turn, client: Client): Promise<Outcome> {
  const { reason } = turn.signal;
  if (reason === HAND_OVER) await turn.release();
  else await turn.close({ status: 'cancelled' });
  if (reason !== HAND_OVER && reason !== SUPERSEDED) return 'cancelled';
  if (client.opened) client.destroy();
  return reason === HAND_OVER ? 'handed_over' : 'superseded';
}
