import { foldJournal } from '../../../src/checkpoint/journal-fold.ts';
import type { Consequences } from './deployment.ts';
import type { Fault, History } from './history.ts';
import type { SimulatedClient } from './simulated-client.ts';
import { WORD } from './word-provider.ts';

/** How long an acknowledged event may take to reach a client. */
const ON_ITS_WAY_MS = 10;
/** With `interval`, a store that is and was available acknowledges delivered events within this time. */
const UNSTORED_MS = 500;
/** A store that doesn't answer delays the start of an answer by a second. */
const PATIENCE_MS = 2000;
/** With this latency in each direction, a heartbeat still arrives in time. */
const SLOW_MS = 200;

/** Describes all violations of the invariants; empty if there are none. */
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

/** A client loses nothing, receives nothing twice, and never takes a partial answer for the whole. */
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
  // If Redis lacks even the beginning of the run, nothing is left of the request.
  if (end === 'refused' && client.isKnown)
    found.push(`${name}: has an answer that no run continues: ${text}`);
  if (end !== 'done') return found;
  const isCalled = calls.every((call) => /^\{"by":\d+\}$/.test(call.arguments));
  const isWhole = words.length === plan.words && calls.length === Number(plan.calls) && isCalled;
  if (!isWhole || finish !== (plan.calls ? 'tool_calls' : 'stop'))
    found.push(`${name}: a partial that ends as ${finish}: ${text} ${JSON.stringify(calls)}`);
  return found;
}

/** Everything that the store acknowledged and didn't lose is still there in the end. */
function ofAcknowledgement({ history, acknowledged, stored, losses_ms }: Consequences): string[] {
  const found: string[] = [];
  // If a reply is late, it is unknown whether Redis sent it before it lost the data.
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
 * Redis answers every running replica, and no replica dies with unstored events. Its losses can be stored again, except
 * for a run that was taken over and lost completely.
 */
const isStoreWell = ({ history: { faults }, isForgotten }: Consequences): boolean =>
  !(isForgotten && mayBeTakenOver(faults)) &&
  faults.every(
    (fault) =>
      isOf(['pause', 'drain', 'disconnect'])(fault) || (fault.kind === 'restart' && fault.for_ms === 0),
  );

/**
 * A reader's replica can take a run over if the run's own replica is away or, with several restarts, after Redis has
 * forgotten the run.
 */
const mayBeTakenOver = (faults: readonly Fault[]): boolean =>
  faults.some(isOf(['pause', 'drain'])) || faults.filter(isOf(['restart'])).length > 1;

/**
 * All clients with the complete answer of one run have the same answer, unless one of them received it before Redis
 * lost it. With `interval`, an owner that can't reach its store delivers events that no other client will get.
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

/** When an unavailable Redis last became available again. */
const restarted_ms = ({ faults }: History): number =>
  Math.max(...faults.flatMap((fault) => (fault.kind === 'restart' ? [fault.at_ms + fault.for_ms] : [])));

/**
 * When Redis's replies from before its last loss have reached every replica; a stopped replica reads them when it
 * continues.
 */
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

/** Faults that leave the run's replica alone; the run begins on the first one. */
const isHarmless = (fault: Fault, { replicas }: History): boolean =>
  fault.kind === 'disconnect' ||
  (fault.kind === 'delay' && fault.latency_ms <= SLOW_MS) ||
  (isOf(['partition', 'delay', 'lost_reply'])(fault) && 'replica' in fault && fault.replica % replicas !== 0);

/** Every run ends, and with `write_ahead` no client has events that the journal lacks. */
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
 * With `interval`, a failing store doesn't disturb a run without other readers. A run whose replica reaches its store
 * isn't taken over, however many clients read it and whatever happens to their replicas.
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
  // Other replicas may have salvaged the run while its own was unreachable, but it takes the run back. The exception is
  // a replica that is away twice: the end of the run may then have waited for the store until it was given up.
  const status = stored.get(first.run)?.status;
  const isLost = faults.some(isOf(['restart'])) || faults.filter(isOf(['partition', 'delay'])).length > 1;
  return isLost || status === 'complete'
    ? []
    : [`the answer that its client has whole is stored as ${status}`];
}
