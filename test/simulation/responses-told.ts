import { CheckpointScheduler } from '../../src/checkpoint/checkpoint-scheduler.ts';
import { MemoryStore } from '../../src/checkpoint/memory/store.ts';
import { PauseWatch } from '../../src/lib/pause-watch.ts';
import { sleep, type Time } from '../../src/lib/time.ts';
import type { Outcome } from '../../src/plans/outcome.ts';
import { NO_OBSERVER } from '../../src/proxy/run/context/run-observer.ts';
import { relay } from '../../src/proxy/run/relay.ts';
import {
  type Transport,
  TransportFailure,
  type TransportRequest,
} from '../../src/proxy/upstream/transport.ts';
import { CapabilityMemory } from '../../src/proxy/wires/dialects/capability-memory.ts';
import { responsesEvent } from '../provider/wires/responses-events.ts';
import { RecordingClient } from './recording-client.ts';
import { readResponses } from './responses-reading.ts';
import { configurationOf, METRICS, runOf, SILENT_LOG, type SimulationOptions } from './simulate.ts';
import type { StreamReading } from './stream-reading.ts';
import { VirtualTime } from './virtual-time.ts';

export interface Payload {
  readonly type: string;
  readonly [field: string]: unknown;
}

/** Stands for a pause of `ms` in the stream. */
export const silence = (ms: number): Payload => ({ type: 'silence', ms });
const SILENCE = /^event: silence\n.*"ms":(\d+)/;

/** Numbers and frames the events as a provider does. */
export const framed = (events: readonly Payload[]): string[] => {
  let number = 0;
  return events.map(({ type, ...fields }) => {
    const sequence_number = type === 'silence' ? number : number++;
    return responsesEvent({ type, sequence_number, ...fields });
  });
};

/** The result of an answer with these bodies, one per attempt. */
export interface Told {
  readonly outcome: Outcome;
  readonly body: string;
  readonly events: readonly Payload[];
  readonly stream: StreamReading;
  /** The provider's requests from the second on. */
  readonly asked: readonly Record<string, unknown>[];
}

/** The provider's responses to the attempts that it refuses, by attempt from 0. */
export type Refusals = Readonly<Record<number, object>>;

/** A provider with fixed bodies. Each breaks off unless it contains the end of an answer. */
class ToldBodies implements Transport {
  readonly requests: TransportRequest[] = [];
  readonly #bodies: readonly (readonly string[])[];
  readonly #time: Time;
  readonly #refusals: Refusals;

  constructor(bodies: readonly (readonly string[])[], time: Time, refusals: Refusals) {
    this.#bodies = bodies;
    this.#time = time;
    this.#refusals = refusals;
  }

  async open(request: TransportRequest) {
    const time = this.#time;
    const number = this.requests.length;
    const body = this.#bodies[number];
    const refusal = this.#refusals[number];
    this.requests.push(request);
    if (refusal) return refusalOf(refusal);
    if (!body) throw new TransportFailure('ECONNREFUSED');
    const isWhole = /"type":"response\.(completed|incomplete|failed)"/.test(body.at(-1) ?? '');
    return {
      status: 200,
      headers: { 'content-type': 'text/event-stream' },
      body: {
        async consume(take: (piece: Buffer) => Promise<void> | undefined) {
          for (const event of body) {
            const [, ms] = SILENCE.exec(event) ?? [];
            if (ms === undefined) await take(Buffer.from(event));
            else await sleep(time, Number(ms), request.signal);
            if (request.signal.aborted) throw new TransportFailure('ABORTED');
          }
          if (!isWhole) throw new TransportFailure('ECONNRESET');
        },
      },
    };
  }

  async close(): Promise<void> {}
}

const refusalOf = (error: object) => ({
  status: 400,
  headers: { 'content-type': 'application/json' },
  body: {
    async consume(take: (piece: Buffer) => Promise<void> | undefined) {
      await take(Buffer.from(JSON.stringify(error)));
    },
  },
});

/**
 * Simulates one run on `/v1/responses` with these bodies from the provider. `asked` adds fields to the client's
 * request.
 */
export async function tellResponses(
  bodies: readonly (readonly Payload[])[],
  options: SimulationOptions & { readonly asked?: object; readonly refusals?: Refusals } = {},
): Promise<Told> {
  const time = new VirtualTime();
  const provider = new ToldBodies(bodies.map(framed), time, options.refusals ?? {});
  const client = new RecordingClient();
  const run = runOf({ ...options, wire: 'responses' }, new AbortController().signal);
  const request = { ...run.request, ...options.asked };
  const outcome = await time.drive(
    relay({ ...run, request, body: JSON.stringify(request) }, client, {
      configuration: configurationOf(options),
      transport: provider,
      store: new MemoryStore({ time, ttl_ms: 604_800_000 }),
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
  const payloads = client.body.match(/(?<=^data: ).*$/gm) ?? [];
  return {
    outcome,
    body: client.body,
    events: payloads.map((payload) => JSON.parse(payload) as Payload),
    stream: readResponses(client.body, { live: (options.events ?? 'none') !== 'none' }),
    asked: provider.requests.slice(1).map(({ body }) => JSON.parse(String(body)) as Record<string, unknown>),
  };
}
