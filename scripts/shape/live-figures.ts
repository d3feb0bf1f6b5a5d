import { setTimeout } from 'node:timers/promises';
import { StreamClient } from '../../test/e2e/stream-client.ts';
import type { Plan } from '../../test/provider/script.ts';
import type { Call, InstanceCounts } from './probe-messages.ts';
import { ProbedHoldfast, type UpstreamOptions } from './probed-holdfast.ts';
import { type SteppedAnswer, SteppedProvider } from './stepped-provider.ts';

const EVENT_REPETITIONS = 20;
const RESET_REPETITIONS = 6;
/** Streams that are open at once while objects are counted. */
const OPEN_STREAMS = 50;
/** The role and enough text to continue from. */
const EVENTS_BEFORE = 20;
/** Enough that a continuation becomes visible, whatever it repeats first, and far from its end. */
const EVENTS_AFTER = 40;
/** After this, an event that the client has received has no further effects except by timers. */
const SETTLE_MS = 20;
/** After this, the writes at the start of a run or after an interruption have reached the store. */
const STORE_MS = 500;

/** A long text without repetitions, one word per event. */
const TEXT = Array.from({ length: 400 }, (_, index) => `word${index}`).join(' ');
const REQUEST = { model: 'model', stream: true, messages: [{ role: 'user', content: 'Count.' }] };

/** How a provider continues an answer, and what Holdfast knows about it. */
interface Scenario {
  readonly plan: Plan;
  readonly upstream: Omit<UpstreamOptions, 'base_url'>;
}

/** The provider is known to continue a prefix exactly. */
const PREFILL: Scenario = {
  plan: { parts: [{ text: TEXT }], prefill: 'vllm' },
  upstream: { dialect: 'vllm' },
};
/** Nothing is known about the provider, and its model repeats the anchor as asked. */
const NUDGE: Scenario = { plan: { parts: [{ text: TEXT }], continuation: 'obedient' }, upstream: {} };

export interface LiveFigures {
  /** All calls made for one healthy event. */
  readonly event: readonly Call[];
  readonly prefill: ResetCalls;
  readonly nudge: ResetCalls;
  /** The number of objects of each class that one open run holds. */
  readonly run: InstanceCounts;
}

/** The calls of a run that is interrupted by a TCP reset. */
export interface ResetCalls {
  /** From the request until just before the reset. */
  readonly before: readonly Call[];
  /** From the reset until the client receives the beginning of the continuation. */
  readonly after: readonly Call[];
}

/** Measures a Holdfast process between a local provider and a local client. Takes about 15 seconds. */
export async function liveFigures(): Promise<LiveFigures> {
  // A separate process, because completed runs leave objects behind that must not count.
  const run = await withHoldfast(PREFILL, runObjects);
  const { event, prefill } = await withHoldfast(PREFILL, async (holdfast, provider) => ({
    event: await eventCalls(holdfast, provider),
    prefill: await resetCalls(holdfast, provider),
  }));
  const nudge = await withHoldfast(NUDGE, resetCalls);
  return { event, prefill, nudge, run };
}

async function withHoldfast<Figures>(
  { plan, upstream }: Scenario,
  measure: (holdfast: ProbedHoldfast, provider: SteppedProvider) => Promise<Figures>,
): Promise<Figures> {
  const provider = await SteppedProvider.start(plan);
  try {
    const holdfast = await ProbedHoldfast.start({ ...upstream, base_url: provider.url });
    try {
      return await measure(holdfast, provider);
    } finally {
      await holdfast.close();
    }
  } finally {
    provider.close();
  }
}

interface OpenStream {
  readonly client: StreamClient;
  readonly answer: SteppedAnswer;
}

/** Opens a stream. Resolves once its first events have arrived. */
async function openStream(
  holdfast: ProbedHoldfast,
  provider: SteppedProvider,
  events = EVENTS_BEFORE,
): Promise<OpenStream> {
  const asked = provider.next();
  const opened = StreamClient.open(holdfast.url, REQUEST);
  const answer = await asked;
  answer.send(events);
  const client = await opened;
  await client.read();
  await client.received(events);
  return { client, answer };
}

/**
 * Timers and other work of the process can only add calls. Each repetition reads the counters before and after one
 * event, so the repetition with the fewest calls shows the event alone.
 */
async function eventCalls(holdfast: ProbedHoldfast, provider: SteppedProvider): Promise<readonly Call[]> {
  const { client, answer } = await openStream(holdfast, provider);
  const repetitions: (readonly Call[])[] = [];
  for (let repetition = 0; repetition < EVENT_REPETITIONS; repetition += 1) {
    await setTimeout(SETTLE_MS);
    await holdfast.calls();
    answer.send();
    await client.received(client.events.length + 1);
    await setTimeout(SETTLE_MS);
    repetitions.push(await holdfast.calls());
  }
  return repetitions.reduce((best, calls) => (total(calls) < total(best) ? calls : best));
}

/**
 * Each repetition has a stream of its own. Calls that not all of them make come from timers or from the first stream.
 */
async function resetCalls(holdfast: ProbedHoldfast, provider: SteppedProvider): Promise<ResetCalls> {
  let { before, after } = await oneReset(holdfast, provider);
  for (let repetition = 1; repetition < RESET_REPETITIONS; repetition += 1) {
    const again = await oneReset(holdfast, provider);
    before = sharedFunctions(before, again.before);
    after = sharedFunctions(after, again.after);
  }
  return { before, after };
}

async function oneReset(holdfast: ProbedHoldfast, provider: SteppedProvider): Promise<ResetCalls> {
  await holdfast.calls();
  const { client, answer } = await openStream(holdfast, provider);
  await setTimeout(STORE_MS);
  const before = await holdfast.calls();
  const asked = provider.next();
  answer.reset();
  (await asked).send(EVENTS_AFTER);
  await client.received(client.events.length + 1);
  await setTimeout(STORE_MS);
  return { before, after: await holdfast.calls() };
}

/**
 * Counts live objects rather than constructor calls: an event's own objects are covered by its calls, while a reader of
 * the code has to know the objects that a run holds. The first stream creates the shared objects, which don't count.
 */
async function runObjects(holdfast: ProbedHoldfast, provider: SteppedProvider): Promise<InstanceCounts> {
  await openStream(holdfast, provider);
  await setTimeout(STORE_MS);
  const before = await holdfast.instances();
  for (let opened = 0; opened < OPEN_STREAMS; opened += 1) await openStream(holdfast, provider);
  await setTimeout(STORE_MS);
  const after = await holdfast.instances();
  const counts = Object.entries(after).map(
    ([name, count]) => [name, Math.round((count - (before[name] ?? 0)) / OPEN_STREAMS)] as const,
  );
  return Object.fromEntries(counts.filter(([, count]) => count > 0));
}

/** The total number of calls. */
export const total = (calls: readonly Call[]): number => calls.reduce((sum, { count }) => sum + count, 0);

export const filesOf = (calls: readonly Call[]): ReadonlySet<string> =>
  new Set(calls.map(({ file }) => file));

/** The files of `calls` that aren't files of `known`. */
export function filesBeyond(calls: readonly Call[], known: readonly Call[]): string[] {
  const files = filesOf(known);
  return [...filesOf(calls)].filter((file) => !files.has(file));
}

/** The functions of `calls` that aren't in `known`. */
export function withoutFunctions(calls: readonly Call[], known: readonly Call[]): Call[] {
  const identity = ({ file, start }: Call) => `${file}:${start}`;
  const identities = new Set(known.map(identity));
  return calls.filter((call) => !identities.has(identity(call)));
}

const sharedFunctions = (calls: readonly Call[], others: readonly Call[]): readonly Call[] =>
  withoutFunctions(calls, withoutFunctions(calls, others));
