import { CheckpointScheduler } from '../../../src/checkpoint/checkpoint-scheduler.ts';
import { foldJournal, type JournalFold } from '../../../src/checkpoint/journal-fold.ts';
import { MemoryStore } from '../../../src/checkpoint/memory/store.ts';
import { PauseWatch } from '../../../src/lib/pause-watch.ts';
import { sleep } from '../../../src/lib/time.ts';
import type { Outcome } from '../../../src/plans/outcome.ts';
import { NO_OBSERVER } from '../../../src/proxy/run/context/run-observer.ts';
import { relay } from '../../../src/proxy/run/relay.ts';
import { type Transport, TransportFailure } from '../../../src/proxy/upstream/transport.ts';
import { CapabilityMemory } from '../../../src/proxy/wires/dialects/capability-memory.ts';
import { RecordingClient } from '../../simulation/recording-client.ts';
import {
  configurationOf,
  METRICS,
  OWNER,
  RUN,
  readingOf,
  runOf,
  SILENT_LOG,
  type SimulationOptions,
} from '../../simulation/simulate.ts';
import type { StreamReading } from '../../simulation/stream-reading.ts';
import { VirtualTime } from '../../simulation/virtual-time.ts';

/** A provider's literal answer to one request. A number is a pause in milliseconds, and `cut` a reset. */
export type RawAnswer = readonly (string | number)[];
export const CUT = 'cut';

/** The clocks for an upstream that may be silent for a quarter of an hour. */
export const PATIENT_CLOCKS = {
  connect_ms: 10_000,
  first_byte_ms: 900_000,
  first_token_ms: 900_000,
  idle_ms: 900_000,
  progress_ms: 900_000,
  progress_reasoning_ms: 900_000,
  attempt_ms: 1_800_000,
};

export interface RawRun {
  readonly outcome: Outcome;
  readonly client: RecordingClient;
  readonly stream: StreamReading;
  readonly journal: JournalFold;
  /** The bodies of the requests to the provider. */
  readonly requests: readonly Readonly<Record<string, unknown>>[];
  /** When each event was sent to the client. */
  readonly events_ms: readonly number[];
  /** When the run ended. */
  readonly end_ms: number;
}

/** One run on virtual time against a provider with exactly these answers, one per request. */
export async function relayRaw(answers: readonly RawAnswer[], options: SimulationOptions): Promise<RawRun> {
  const time = new VirtualTime();
  const events_ms: number[] = [];
  let length = 0;
  const client = new RecordingClient(({ body }) => {
    if (/^data:/m.test(body.slice(length))) events_ms.push(time.now());
    length = body.length;
  });
  const requests: Readonly<Record<string, unknown>>[] = [];
  const transport: Transport = {
    async open({ body, signal }) {
      const answer = answers[requests.length] ?? [CUT];
      requests.push(JSON.parse(String(body)) as Readonly<Record<string, unknown>>);
      return {
        status: 200,
        headers: { 'content-type': 'text/event-stream' },
        body: {
          async consume(take) {
            for (const part of answer) {
              if (typeof part === 'number') await sleep(time, part, signal);
              if (signal.aborted) throw new TransportFailure('ABORTED');
              if (part === CUT) throw new TransportFailure('ECONNRESET');
              if (typeof part === 'string') await take(Buffer.from(part));
            }
          },
        },
      };
    },
    async close() {},
  };
  const store = new MemoryStore({ time, ttl_ms: 604_800_000 });
  const outcome = await time.drive(
    relay(runOf(options, new AbortController().signal), client, {
      configuration: configurationOf(options),
      transport,
      store,
      scheduler: new CheckpointScheduler({ interval_ms: 100, time }),
      pauses: new PauseWatch(time, 1000),
      observer: NO_OBSERVER,
      capabilities: new CapabilityMemory(time),
      metrics: METRICS,
      log: SILENT_LOG,
      time,
      random: () => 0.5,
    }),
  );
  const stored = await store.read(RUN, OWNER, 0);
  const journal = foldJournal(stored?.records ?? []);
  const stream = readingOf(client.body, options);
  return { outcome, client, stream, journal, requests, events_ms, end_ms: time.now() };
}
