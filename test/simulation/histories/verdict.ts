import { foldJournal } from '../../../src/checkpoint/journal-fold.ts';
import type { Consequences } from './deployment.ts';
import type { Fault, History } from './history.ts';
import type { SimulatedClient } from './simulated-client.ts';
import { WORD } from './word-provider.ts';

/** What is acknowledged may be on its way to a client for this long. */
const ON_ITS_WAY_MS = 10;
/** With `interval`, what is delivered is acknowledged within this time by a store that answers, and has answered before. */
const UNSTORED_MS = 500;
/** A store that does not answer delays the beginning of an answer by a second. */
const PATIENCE_MS = 2000;
/** A sign of life that takes so long each way still comes in time. */
const SLOW_MS = 200;

/** What must not be, in words; empty when everything is as it should be. */
export function violationsOf(consequences: Consequences): readonly string[] {
  return [
    ...consequences.errors.map((error) => `thrown: ${error instanceof Error ? error.stack : String(error)}`),
    ...consequences.clients.flatMap((client) => ofClient(client, consequences)),
    ...ofAcknowledgement(consequences),
    ...ofDifference(consequences),
    ...ofStore(consequences),
    ...ofHealth(consequences),
  ];
}

/** Nothing is lost or shown twice, and a partial does not pass for the whole. */
function ofClient(client: SimulatedClient, { history }: Consequences): string[] {
  const { name, text, words, calls, end, finish, violations } = client;
  const { plan } = history;
  const found = violations.map((violation) => `${name}: ${violation}`);
  if (text.replace(WORD, '').trim() !== '') found.push(`${name}: torn words: ${text}`);
  if (words.some(({ place }, index) => place !== index))
    found.push(`${name}: a word is missing, or there twice: ${text}`);
  if (words.some(({ request }, index) => request < (words[index - 1]?.request ?? 0)))
    found.push(`${name}: back to an earlier answer: ${text}`);
  if (calls.length > 1) found.push(`${name}: more than one call`);
  // Where Redis has not even the beginning of the run, nothing says what was asked.
  if (end === 'refused' && client.isKnown)
    found.push(`${name}: has an answer that no run continues: ${text}`);
  if (end !== 'done') return found;
  const isCalled = calls.every((call) => /^\{"by":\d+\}$/.test(call.arguments));
  const isWhole = words.length === plan.words && calls.length === Number(plan.calls) && isCalled;
  if (!isWhole || finish !== (plan.calls ? 'tool_calls' : 'stop'))
    found.push(`${name}: a partial that ends as ${finish}: ${text} ${JSON.stringify(calls)}`);
  return found;
}

/** What the store has acknowledged and not lost is there in the end. */
function ofAcknowledgement({ history, acknowledged, stored, losses_ms }: Consequences): string[] {
  const found: string[] = [];
  // Of an answer that comes late it is not known whether Redis gave it before it lost what it says.
  if (losses_ms.length > 0 && history.faults.some(isOf(['delay', 'pause', 'partition']))) return found;
  for (const [run, events] of acknowledged) {
    const { records = [], damage } = stored.get(run) ?? {};
    if (damage) found.push(`${run} is damaged: ${damage.reason}`);
    const kept = records.flatMap((record) => record.events.map(({ deltas }) => JSON.stringify(deltas)));
    const place = events.findIndex((event, index) => event !== undefined && event !== kept[index]);
    if (place >= 0) found.push(`event ${place + 1} was stored as ${events[place]}, and is ${kept[place]}`);
  }
  return found;
}

const isOf = (kinds: readonly Fault['kind'][]) => (fault: Fault) => kinds.includes(fault.kind);

/**
 * Redis answers every replica that runs, and no replica dies with what it has not stored. What Redis loses can be stored
 * again, as it cannot be of a run that was taken over and lost whole.
 */
const isStoreWell = ({ history: { faults }, isForgotten }: Consequences): boolean =>
  !(isForgotten && mayBeTakenOver(faults)) &&
  faults.every(
    (fault) =>
      isOf(['pause', 'drain', 'disconnect'])(fault) || (fault.kind === 'restart' && fault.for_ms === 0),
  );

/** By a reader: its replica is away, or was there when Redis had forgotten the run for the first time. */
const mayBeTakenOver = (faults: readonly Fault[]): boolean =>
  faults.some(isOf(['pause', 'drain'])) || faults.filter(isOf(['restart'])).length > 1;

/**
 * Two clients of one run that have a whole answer have the same, unless one of them had it before Redis lost it. With
 * `interval` an owner that cannot reach its store delivers what no other client will have.
 */
function ofDifference(consequences: Consequences): string[] {
  const { history, clients } = consequences;
  const isStrict = history.durability === 'write_ahead';
  if (!isStrict && !isStoreWell(consequences)) return [];
  const since_ms = isStrict
    ? lossDelivered_ms(consequences) + ON_ITS_WAY_MS
    : Math.max(lossDelivered_ms(consequences), restarted_ms(history)) + UNSTORED_MS;
  const [first, ...others] = clients.filter(({ end, whole_ms }) => end === 'done' && whole_ms > since_ms);
  return others
    .filter((other) => other.run === first?.run && answerOf(other) !== answerOf(first))
    .map(
      (other) =>
        `different answers: ${first && answerOf(first)} for ${first?.name}, ${answerOf(other)} for ${other.name}`,
    );
}

/** When a Redis that was away answered again, for the last time. */
const restarted_ms = ({ faults }: History): number =>
  Math.max(...faults.flatMap((fault) => (fault.kind === 'restart' ? [fault.at_ms + fault.for_ms] : [])));

/** When what Redis said before its last loss has reached every replica: one that is stopped reads it when it continues. */
function lossDelivered_ms({ history: { faults }, losses_ms }: Consequences): number {
  const loss_ms = losses_ms.at(-1);
  if (loss_ms === undefined) return Number.NEGATIVE_INFINITY;
  const arrivals_ms = faults.map((fault) => {
    if (!('replica' in fault) || fault.kind === 'lost_reply' || fault.at_ms > loss_ms + ON_ITS_WAY_MS)
      return 0;
    if (fault.kind === 'pause') return fault.at_ms + fault.for_ms;
    return fault.kind === 'delay' ? loss_ms + fault.latency_ms : 0;
  });
  return Math.max(loss_ms, ...arrivals_ms);
}

const answerOf = ({ text, calls }: SimulatedClient): string => JSON.stringify([text.trim(), calls]);

/** The run begins at the first replica. */
const isHarmless = (fault: Fault, { replicas }: History): boolean =>
  fault.kind === 'disconnect' ||
  (fault.kind === 'delay' && fault.latency_ms <= SLOW_MS) ||
  (isOf(['partition', 'delay', 'lost_reply'])(fault) && 'replica' in fault && fault.replica % replicas !== 0);

/** A run comes to its end, and with `write_ahead` no client has what the journal has not. */
function ofStore({ history, clients, stored, losses_ms }: Consequences): string[] {
  const found: string[] = [];
  for (const [run, { status, records }] of stored) {
    if (status === 'running') found.push(`${run} is running for ever`);
    if (history.durability !== 'write_ahead' || losses_ms.length > 0) continue;
    const { text } = foldJournal(records);
    for (const client of clients)
      if (client.run === run && !text.startsWith(client.text.trim()))
        found.push(`${client.name} has what the journal has not: ${client.text}, stored: ${text}`);
  }
  return found;
}

/**
 * With `interval`, a store that fails costs a run nothing that no reader has asked for. A run whose replica reaches its store
 * is not taken over, however many read it, and whatever happens to their replicas.
 */
function ofHealth({ history, clients, requests, stored }: Consequences): string[] {
  const { durability, faults, readers, plan, patience_ms } = history;
  const isAlone = durability === 'interval' && readers.length === 0;
  const isUndisturbed =
    (isAlone && faults.every(isOf(['partition', 'delay', 'lost_reply', 'restart']))) ||
    faults.every((fault) => isHarmless(fault, history));
  if (!isUndisturbed || patience_ms < PATIENCE_MS) return [];
  const isCut = plan.cut_after !== undefined && plan.cut_after < plan.words;
  const paid = isCut ? 2 : 1;
  const [first] = clients;
  if (first?.end !== 'done' || requests !== paid)
    return [`a healthy stream was disturbed: ${first?.end}, ${requests} requests`];
  // Others may have salvaged it while its replica could not be heard, but it is taken back from them: unless its replica is
  // away twice, and the end of the run has waited for the store for so long that it is given up.
  const status = stored.get(first.run)?.status;
  const isLost = faults.some(isOf(['restart'])) || faults.filter(isOf(['partition', 'delay'])).length > 1;
  return isLost || status === 'complete'
    ? []
    : [`the answer that its client has whole is stored as ${status}`];
}
