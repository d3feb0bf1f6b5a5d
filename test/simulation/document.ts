import type { Outcome } from '../../src/plans/outcome.ts';
import { DocumentResponse } from '../../src/proxy/downstream/document-response.ts';
import { eventFrame } from '../../src/proxy/downstream/event-frame.ts';
import type { Target } from '../../src/proxy/upstream/target.ts';
import type { Wire } from '../../src/proxy/wires/common/wire.ts';
import { WIRES } from '../../src/proxy/wires/registry.ts';
import type { Plan } from '../provider/script.ts';
import { DEFAULTS, readingOf, type Simulation, type SimulationOptions, simulate } from './simulate.ts';
import type { StreamReading } from './stream-reading.ts';

/** The response to a client that didn't request a stream. */
export interface DocumentSimulation {
  readonly run: Simulation;
  /** What a streaming client would have received. */
  readonly stream: StreamReading;
  readonly outcome: Outcome;
  readonly status: number | undefined;
  readonly headers: Readonly<Record<string, string | string[]>>;
  readonly body: Readonly<Record<string, unknown>>;
  /** Targets that Holdfast has to ask with the client's own request, without streaming. */
  readonly left: readonly Target[];
}

class RecordedDocument extends DocumentResponse {
  /** Everything written: payloads, one per line, and comments. */
  lines = '';

  override write(frames: string): boolean {
    this.lines += frames;
    return super.write(frames);
  }
}

/** Simulates the run for a client that didn't request a stream. */
export async function simulateDocument(
  plan: Plan | ((attempt: number) => Plan),
  options: SimulationOptions & { readonly run_bytes?: number } = {},
): Promise<DocumentSimulation> {
  const left: Target[] = [];
  let document: RecordedDocument | undefined;
  const run = await simulate(plan, {
    ...options,
    through: (client, leave) => {
      document = new RecordedDocument(
        {
          signal: new AbortController().signal,
          closed: Promise.resolve(),
          get ended() {
            return client.rejection !== undefined;
          },
          get over() {
            return client.rejection !== undefined || client.destroyed;
          },
          reject: (status, headers, body) => client.reject(status, headers, body),
          destroy: () => client.destroy(),
        },
        {
          wire: WIRES[options.wire ?? 'chat_completions'],
          limits: { run_bytes: options.run_bytes ?? DEFAULTS.limits.run_bytes },
          onOpen: () => ({}),
          onOverflow: leave,
          onUnstreamed: (target, isAnswered) => {
            if (!isAnswered) left.push(target);
          },
        },
      );
      return document;
    },
  });
  const { rejection, rejectionHeaders: headers } = run.client;
  const { status, body = '{}' } = rejection ?? {};
  const stream = readingOf(
    streamOf(document?.lines ?? '', WIRES[options.wire ?? 'chat_completions']),
    options,
  );
  return { run, stream, outcome: run.outcome, status, headers, body: parsed(body), left };
}

/** Restores the frames from the lines. */
const streamOf = (lines: string, wire: Wire): string =>
  (lines.match(/[^\n]*\n/g) ?? [])
    .map((line) => (line.startsWith(':') ? line : eventFrame(line.trimEnd(), wire)))
    .join('');

/** A provider may have refused with an HTML page. */
function parsed(body: string): Readonly<Record<string, unknown>> {
  try {
    return JSON.parse(body) as Readonly<Record<string, unknown>>;
  } catch {
    return { page: body };
  }
}
