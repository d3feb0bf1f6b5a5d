import {
  type Transport,
  TransportFailure,
  type TransportRequest,
  type TransportResponse,
} from '../../../src/proxy/upstream/transport.ts';
import type { SimulatedRequest } from '../simulated-provider.ts';
import { readMessagesRequest, tellMessage } from './messages-telling.ts';
import { readResponsesRequest, tellResponse } from './responses-telling.ts';
import { restOf, type ScriptPart, type ToolScript } from './script.ts';

/** The part of an answer that a request returns, for the model to continue. */
export interface Asked {
  /** The keys of the tools with their use and result, in order. */
  readonly keys: readonly string[];
  /** The text after the last tool. */
  readonly tail: string;
  /** The model continues at the exact token; otherwise a user message asks it to continue. */
  readonly isPrefill: boolean;
  /** The last user message. */
  readonly nudge: string;
}

/** An event, and what happens when the provider sends it. */
export interface ToldEvent {
  readonly frame: string;
  readonly runs?: string;
  readonly settles?: string;
}

interface Performance {
  readonly events: readonly ToldEvent[];
  readonly cut: number | undefined;
  readonly host: string;
}

/**
 * A provider that runs tools and counts their executions. A tool has run once the event that says so has been sent. The
 * model continues from the results in the request, and runs a tool again if its result is missing.
 */
export class CountingProvider implements Transport {
  readonly requests: SimulatedRequest[] = [];
  readonly attempts: SimulatedRequest[] = [];
  /** The number of executions, by key. */
  readonly executions = new Map<string, number>();
  /** The keys of tools with a delivered result; a replica that dies earlier never learns of it. */
  readonly settled = new Set<string>();
  readonly complaints: string[] = [];
  /** The host that ran each tool, by key. */
  readonly #ranAt = new Map<string, string>();
  /** The keys of tools that ran, by the event that says so, until a replica has received it. */
  readonly #unheard = new Map<string, string>();
  #isHeard: boolean = false;
  readonly #script: ToolScript;
  readonly #wire: 'responses' | 'messages';

  constructor(script: ToolScript, wire: 'responses' | 'messages') {
    this.#script = script;
    this.#wire = wire;
  }

  async open(request: TransportRequest): Promise<TransportResponse> {
    const body = JSON.parse(String(request.body)) as SimulatedRequest['body'];
    const recorded = { url: request.url, headers: request.headers, body, aborted: false };
    this.requests.push(recorded);
    this.attempts.push(recorded);
    const serial = this.requests.length;
    const asked = this.#wire === 'responses' ? readResponsesRequest(body) : readMessagesRequest(body);
    const { host } = new URL(request.url);
    this.#unheard.clear();
    for (const key of asked.keys)
      if (this.#ranAt.get(key) !== host)
        this.complaints.push(`${host} was given back ${key}, which it did not run`);
    const tell = this.#wire === 'responses' ? tellResponse : tellMessage;
    const events = tell(this.#said(asked), serial, this.#script);
    const cut = this.#script.cuts[serial - 1] ?? undefined;
    return {
      status: 200,
      headers: { 'content-type': 'text/event-stream' },
      body: { consume: (take) => this.#perform({ events, cut, host }, request.signal, take) },
    };
  }

  async close(): Promise<void> {}

  #said(asked: Asked): readonly ScriptPart[] {
    const rest = restOf(this.#script, asked.keys, asked.tail);
    if (!rest) {
      this.complaints.push(`asked to go on from what was never said: ${JSON.stringify(asked)}`);
      return this.#script.parts;
    }
    const anchor = asked.isPrefill ? '' : quotedEndOf(asked);
    return anchor === '' ? rest : [{ kind: 'text', pieces: [anchor] }, ...rest];
  }

  /**
   * One replica's transport. Data on their way to a dying replica are lost, so a tool counts as run only once a replica
   * has received the event that says so.
   */
  heardBy(transport: Transport): Transport {
    this.#isHeard = true;
    return {
      open: async (request) => {
        const { body, ...response } = await transport.open(request);
        const hear = (piece: Buffer) => {
          for (const frame of String(piece).split(/(?<=\n\n)/)) {
            const runs = this.#unheard.get(frame);
            this.#unheard.delete(frame);
            if (runs !== undefined) this.#count(runs);
          }
        };
        return {
          ...response,
          body: {
            consume: (take) =>
              body.consume((piece) => {
                hear(piece);
                return take(piece);
              }),
          },
        };
      },
      close: () => transport.close(),
    };
  }

  #count(key: string): void {
    this.executions.set(key, (this.executions.get(key) ?? 0) + 1);
  }

  async #perform(
    { events, cut, host }: Performance,
    signal: AbortSignal,
    take: (piece: Buffer) => Promise<void> | undefined,
  ): Promise<void> {
    const sent = events.slice(0, cut);
    for (let start = 0; start < sent.length; start += this.#script.batch) {
      const piece = sent.slice(start, start + this.#script.batch);
      if (signal.aborted) throw new TransportFailure('ABORTED');
      for (const { frame, runs } of piece) {
        if (runs === undefined) continue;
        this.#ranAt.set(runs, host);
        if (this.#isHeard) this.#unheard.set(frame, runs);
        else this.#count(runs);
      }
      await take(Buffer.from(piece.map(({ frame }) => frame).join('')));
      for (const { settles } of piece) if (settles !== undefined) this.settled.add(settles);
    }
    if (cut !== undefined && cut < events.length) throw new TransportFailure('ECONNRESET');
  }
}

/** The user's last quotation, which the model repeats on request. */
function quotedEndOf({ nudge, tail }: Asked): string {
  const quotes = (nudge.match(/"(?:[^"\\]|\\.)*"/g) ?? []).map((quote) => JSON.parse(quote) as string);
  return quotes.find((quote) => quote !== '' && tail.trimEnd().endsWith(quote)) ?? '';
}
