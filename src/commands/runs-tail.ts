import { setTimeout as pause } from 'node:timers/promises';
import { createParser, type EventSourceMessage } from 'eventsource-parser';
import type { WireName } from '../checkpoint/journal.ts';
import type { RunId } from '../checkpoint/store.ts';
import { parsedJson } from '../lib/json.ts';
import { WIRES } from '../proxy/wires/registry.ts';
import type { FeedEntry, FeedUpdate, RunDetail, TimelineEntry } from '../status/snapshot.ts';
import { type AnswerOutput, failureIn, jsonAnswer, TextAnswer } from './answer-output.ts';
import { CommandFailure, type Invocation } from './command.ts';
import { askForRun, readRun, requireVersion } from './replica-documents.ts';
import { ownerHeaders, ReplicaPort, ReplicaUnreachable, runOperand } from './replica-port.ts';
import { timelineLine } from './run-text.ts';
import { printJsonLine } from './terminal.ts';

export function run(invocation: Invocation): Promise<void> {
  const id = runOperand(invocation);
  const json = invocation.switches.has('json');
  const owner = ownerHeaders(invocation, process.env);
  return owner
    ? tailAnswer(new ReplicaPort('api', invocation, process.env, owner), id, json)
    : tailTimeline(new ReplicaPort('admin', invocation, process.env), id, json);
}

/** Prints a run from beginning to end, as its owner. */
async function tailAnswer(api: ReplicaPort, run: RunId, json: boolean): Promise<void> {
  const { wire: name } = await askForRun(api, run);
  const wire = WIRES[(name ?? 'chat_completions') as WireName];
  if (!wire) throw new CommandFailure(`the run is on a wire that this release does not know: ${name}.`);
  const output: AnswerOutput = json ? jsonAnswer : new TextAnswer(wire, process.stdout, process.stderr);
  const received = new ReceivedTail();
  await followEvents(
    (closing) => openAnswer(api, run, received, closing),
    ({ data }) => {
      const seq = received.add(data);
      output.add(seq, data);
      const end = wire.delivered.endOf(data);
      if (end === undefined) return false;
      output.end();
      if (end === 'error') throw new CommandFailure(`${run}: ${failureIn(data)}`);
      process.stderr.write(`${run} is complete, ${seq} events\n`);
      return true;
    },
  );
}

/** The most that is kept of an answer, to resume with if the cursor is ahead of the checkpoint. */
const TAIL_CHARACTERS_MAX = 1_048_576;
const OPEN_MAX_MS = 30_000;

/** The latest payloads, which the replica compares with its own. */
class ReceivedTail {
  seq = 0;
  readonly payloads: string[] = [];
  #characters = 0;

  /** Returns the event's ordinal. */
  add(payload: string): number {
    this.payloads.push(payload);
    this.#characters += payload.length;
    while (this.#characters > TAIL_CHARACTERS_MAX && this.payloads.length > 1)
      this.#characters -= this.payloads.shift()?.length ?? 0;
    return ++this.seq;
  }
}

function openAnswer(
  api: ReplicaPort,
  run: RunId,
  { seq, payloads }: ReceivedTail,
  closing: AbortController,
): Promise<Response> {
  const path = `/holdfast/v1/runs/${run}`;
  const opening = setTimeout(() => closing.abort(new Error('the stream did not begin')), OPEN_MAX_MS);
  const opened =
    seq === 0
      ? api.open(`${path}/stream`, { signal: closing.signal })
      : api.open(`${path}/resume`, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify({ cursor: seq, tail: payloads }),
          signal: closing.signal,
        });
  return opened.finally(() => clearTimeout(opening));
}

type Outcome = Extract<TimelineEntry, { kind: 'ended' }>['outcome'];

const UNFINISHED: ReadonlySet<Outcome> = new Set(['failed', 'rejected', 'cancelled', 'salvaged']);

/** Prints a run's timeline on one replica until the run ends there. */
async function tailTimeline(admin: ReplicaPort, run: RunId, json: boolean): Promise<void> {
  const printer = new TimelinePrinter(run, json);
  printer.catchUp(await readRun(admin, run));
  if (printer.outcome === undefined)
    await followEvents(
      ({ signal }) => admin.open('/runs/events', { signal }),
      async ({ event, data }) => {
        const news = parsedJson(data) as (FeedUpdate & { readonly version?: number }) | undefined;
        if (event === 'snapshot') {
          requireVersion(news?.version, admin);
          // Earlier entries, and those missing from the feed, are in the run's own timeline.
          printer.catchUp(await readRun(admin, run));
        } else if (event === 'update') printer.printUpdate(news?.entries ?? []);
        return printer.outcome !== undefined;
      },
    );
  if (printer.outcome !== undefined && UNFINISHED.has(printer.outcome))
    throw new CommandFailure(`${run} was not finished: ${printer.outcome}.`);
}

/** Prints every entry once, whether it comes from the feed, the run's timeline or both. */
class TimelinePrinter {
  outcome: Outcome | undefined;
  readonly #run: RunId;
  readonly #json: boolean;
  readonly #printed = new Set<string>();
  #created_at_ms: number | undefined;
  #key: number | undefined;

  constructor(run: RunId, json: boolean) {
    this.#run = run;
    this.#json = json;
  }

  catchUp({ key, created_at_ms, timeline }: RunDetail): void {
    this.#key = key;
    this.#created_at_ms ??= created_at_ms;
    for (const entry of timeline) this.#print(entry);
  }

  printUpdate(entries: readonly FeedEntry[]): void {
    for (const { key, run: _, ...entry } of entries)
      if (key === this.#key) this.#print(entry as TimelineEntry);
  }

  #print(entry: TimelineEntry): void {
    const known = JSON.stringify(entry);
    if (this.#printed.has(known)) return;
    this.#printed.add(known);
    if (entry.kind === 'ended') this.outcome = entry.outcome;
    if (this.#json) printJsonLine({ run: this.#run, ...entry });
    else process.stdout.write(`${timelineLine(entry, this.#created_at_ms ?? entry.at_ms)}\n`);
  }
}

/** A replica that sends nothing for this long, not even a keep-alive, is gone. */
const SILENCE_MAX_MS = 90_000;
const PAUSE_MIN_MS = 100;
const PAUSE_MAX_MS = 2000;
/** How long the command keeps reconnecting without receiving anything new. */
const FRUITLESS_MAX_MS = 60_000;

/**
 * Reads a stream's events until `read` returns true, however often the connection breaks. `open` reopens the stream;
 * its controller closes the connection. Rejects if reconnecting can't help.
 */
async function followEvents(
  open: (closing: AbortController) => Promise<Response>,
  read: (event: EventSourceMessage) => boolean | Promise<boolean>,
): Promise<void> {
  let pause_ms = PAUSE_MIN_MS;
  let fruitful_at_ms = performance.now();
  for (;;) {
    let broken: unknown;
    try {
      const closing = new AbortController();
      for await (const event of eventsOf(await open(closing), closing)) {
        pause_ms = PAUSE_MIN_MS;
        fruitful_at_ms = performance.now();
        if (await read(event)) return;
      }
    } catch (error) {
      broken = error;
    }
    if (broken instanceof CommandFailure && !(broken instanceof ReplicaUnreachable)) throw broken;
    if (performance.now() - fruitful_at_ms > FRUITLESS_MAX_MS) {
      if (broken instanceof CommandFailure) throw broken;
      throw new CommandFailure('the connection broke, and reconnecting brought nothing new.');
    }
    await pause(pause_ms);
    pause_ms = Math.min(2 * pause_ms, PAUSE_MAX_MS);
  }
}

/**
 * The events of one response as they arrive. Ends with the body, and rejects if the body breaks off or falls silent.
 */
async function* eventsOf(response: Response, closing: AbortController): AsyncGenerator<EventSourceMessage> {
  const arrived: EventSourceMessage[] = [];
  const parser = createParser({ onEvent: (event) => arrived.push(event) });
  const text = new TextDecoder();
  const silence = setTimeout(() => closing.abort(new Error('nothing came any more')), SILENCE_MAX_MS);
  try {
    for await (const bytes of response.body ?? []) {
      silence.refresh();
      parser.feed(text.decode(bytes, { stream: true }));
      yield* arrived.splice(0);
    }
  } finally {
    clearTimeout(silence);
    closing.abort();
  }
}
