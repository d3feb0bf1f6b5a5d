import type { RunId } from '../checkpoint/store.ts';
import { parsedJson } from '../lib/json.ts';
import type { FeedEntry, FeedUpdate, TimelineEntry } from '../status/snapshot.ts';
import { CommandFailure } from './command.ts';
import { eventsOf } from './event-stream.ts';
import { printJsonLine } from './json-output.ts';
import { Reconnection } from './reconnection.ts';
import type { ReplicaPort } from './replica-port.ts';
import { readRun, requireVersion } from './status-document.ts';
import { timelineLine } from './timeline-text.ts';

type Outcome = Extract<TimelineEntry, { kind: 'ended' }>['outcome'];

const UNFINISHED: ReadonlySet<Outcome> = new Set(['failed', 'rejected', 'cancelled', 'salvaged']);

/** Prints the timeline of a run on one replica until the run has ended there. */
export async function tailTimeline(admin: ReplicaPort, run: RunId, json: boolean): Promise<void> {
  const printer = new TimelinePrinter(run, json);
  const catchUp = async () => printer.catchUp(await readRun(admin, run));
  await catchUp();
  const reconnection = new Reconnection();
  while (printer.outcome === undefined) {
    let broken: unknown;
    try {
      const closing = new AbortController();
      const response = await admin.open('/runs/events', { signal: closing.signal });
      for await (const { event, data } of eventsOf(response, closing)) {
        reconnection.succeeded();
        const news = parsedJson(data) as (FeedUpdate & { readonly version?: number }) | undefined;
        if (event === 'snapshot') {
          requireVersion(news?.version, admin);
          // What happened before it, or was left out of the feed, is in the run's own timeline.
          await catchUp();
        } else if (event === 'update') printer.takeAll(news?.entries ?? []);
        if (printer.outcome !== undefined) break;
      }
    } catch (error) {
      broken = error;
    }
    if (printer.outcome === undefined) await reconnection.after(broken);
  }
  if (UNFINISHED.has(printer.outcome))
    throw new CommandFailure(`${run} was not finished: ${printer.outcome}.`);
}

/** Prints every entry once, whether it comes with the feed, with the run's timeline or with both. */
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

  catchUp(detail: { key: number; created_at_ms: number; timeline: readonly TimelineEntry[] }): void {
    this.#key = detail.key;
    this.#created_at_ms ??= detail.created_at_ms;
    for (const entry of detail.timeline) this.#take(entry);
  }

  takeAll(entries: readonly FeedEntry[]): void {
    for (const { key, run: _, ...entry } of entries)
      if (key === this.#key) this.#take(entry as TimelineEntry);
  }

  #take(entry: TimelineEntry): void {
    const known = JSON.stringify(entry);
    if (this.#printed.has(known)) return;
    this.#printed.add(known);
    if (entry.kind === 'ended') this.outcome = entry.outcome;
    if (this.#json) printJsonLine({ run: this.#run, ...entry });
    else process.stdout.write(`${timelineLine(entry, this.#created_at_ms ?? entry.at_ms)}\n`);
  }
}
