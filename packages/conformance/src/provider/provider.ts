import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { createSecureServer, type Http2SecureServer } from 'node:http2';
import type { AddressInfo, Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { answerOf, cutIn, type Step, stepsOf } from '../answer.ts';
import type { Case, Trouble, Wire } from '../cases.ts';
import { randomOf } from '../random.ts';
import { type AnyRequest, type AnyResponse, Channel } from './channel.ts';
import { fieldOf, situationOf } from './situation.ts';
import { documentOn, errorEventOn, errorOn, type Telling, tellingOn } from './telling.ts';

/** Between two events, so that a gateway sees a stream. */
const PACE_MS = 2;
/** Before a cut: a reset takes with it what the gateway has not read yet, so give it the time to. */
const SETTLE_MS = 2000;
const RETRY_AFTER_S = '1';
const REQUEST_BYTES_MAX = 1 << 20;

export interface ProviderOptions {
  readonly cases: readonly Case[];
  readonly seed: number;
  readonly host: string;
  /** 0 is any free port. */
  readonly port: number;
  readonly silence_ms: number;
  /** PEM. With it, the provider speaks HTTP/2 and HTTP/1.1 over TLS. */
  readonly tls?: { readonly cert: string; readonly key: string } | undefined;
  /** Whether it continues what a request's last message begins, or refuses such requests as newer models do. */
  readonly prefill: 'continues' | 'refuses';
}

const PATHS: readonly [string, Wire][] = [
  ['/chat/completions', 'chat'],
  ['/messages', 'messages'],
  ['/responses', 'responses'],
];

/** Put into each prompt, so that requests are recognised whatever a gateway makes of them. */
export const markerOf = ({ id }: Case): string => `conformance-case:${id}:`;
const MARKER = /conformance-case:([\w/]+):/;

/** A provider of all three wires that says what each case has the model say, and breaks where the case has it break. */
export class Provider {
  readonly #options: ProviderOptions;
  readonly #cases: ReadonlyMap<string, Case>;
  readonly #requests = new Map<string, number>();
  readonly #sockets = new Set<Socket>();
  readonly #server: Server | Http2SecureServer;
  #serial = 0;

  private constructor(options: ProviderOptions) {
    this.#options = options;
    this.#cases = new Map(options.cases.map((each) => [each.id, each]));
    const handle = (request: AnyRequest, response: AnyResponse) => {
      const channel = new Channel(response);
      // A gateway that leaves in the middle of its request gets no answer.
      this.#handle(request, channel).catch(() => channel.reset());
    };
    const { tls } = options;
    this.#server = tls ? createSecureServer({ ...tls, allowHTTP1: true }, handle) : createServer(handle);
    this.#server.on('connection', (socket: Socket) => {
      this.#sockets.add(socket);
      socket.once('close', () => this.#sockets.delete(socket));
    });
  }

  /** Rejects if the port is taken. */
  static async start(options: ProviderOptions): Promise<Provider> {
    const provider = new Provider(options);
    provider.#server.listen(options.port, options.host);
    await once(provider.#server, 'listening');
    return provider;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** How many requests this case has brought. */
  requestsOf({ id }: Case): number {
    return this.#requests.get(id) ?? 0;
  }

  async close(): Promise<void> {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
    if (this.#server.listening) await once(this.#server, 'close');
  }

  async #handle(request: AnyRequest, channel: Channel): Promise<void> {
    const path = new URL(request.url ?? '/', 'http://provider').pathname;
    const wire = request.method === 'POST' ? PATHS.find(([end]) => path.endsWith(end))?.[1] : undefined;
    const said = await textOf(request);
    if (said === undefined) return refuse(channel, wire ?? 'chat', 413);
    const asked = this.#cases.get(MARKER.exec(said)?.[1] ?? '');
    if (!wire || !asked) return refuse(channel, wire ?? 'chat', 404);
    const attempt = this.requestsOf(asked) + 1;
    this.#requests.set(asked.id, attempt);
    await this.#answer(asked, wire, JSON.parse(said), attempt, channel);
  }

  /** `wire` is that of the gateway's request: it may translate. */
  async #answer(asked: Case, wire: Wire, body: unknown, attempt: number, channel: Channel): Promise<void> {
    const { seed } = this.#options;
    const answer = answerOf(asked, seed);
    const { said, prefill } = situationOf(wire, body, answer.text);
    if (prefill && this.#refuses(wire, prefill)) return refuse(channel, wire, 400);
    const trouble = attempt === 1 || asked.always ? asked.trouble : 'none';
    if (trouble.startsWith('http_')) return refuse(channel, wire, Number(trouble.slice('http_'.length)));
    if (trouble === 'silence_before') await this.#silence(channel);
    const envelope = {
      id: `${seed}x${++this.#serial}`,
      model: String(fieldOf(body, 'model')),
      has_calls: answer.calls.length > 0,
      usage: fieldOf(fieldOf(body, 'stream_options'), 'include_usage') === true,
    };
    if (fieldOf(body, 'stream') !== true) {
      const document = documentOn(wire, envelope, { ...answer, text: answer.text.slice(said) });
      return this.#tellDocument(document, trouble, wire, channel);
    }
    const telling = tellingOn(wire, envelope);
    const steps = stepsOf(answer, said, randomOf(seed, `${asked.id} ${said}`));
    // Attempts after the first make no progress where all of them fail: one that does may be allowed more of them.
    const cut = trouble === 'none' || attempt > 1 ? 0 : cutIn(steps, asked.state);
    channel.begin(200, { 'content-type': 'text/event-stream; charset=utf-8' });
    await channel.send(telling.begin());
    await tell(steps.slice(0, cut), telling, channel);
    if (await this.#breaks(trouble, wire, channel)) return;
    await tell(steps.slice(cut), telling, channel);
    await channel.send(telling.end());
    channel.end();
  }

  /** Models that continue a beginning on messages refuse one that ends with a space. */
  #refuses(wire: Wire, prefill: string): boolean {
    return this.#options.prefill === 'refuses' || (wire === 'messages' && /\s$/.test(prefill));
  }

  async #tellDocument(document: string, trouble: Trouble, wire: Wire, channel: Channel): Promise<void> {
    // By characters: half of a surrogate pair cannot be sent.
    const characters = [...document];
    const cut = trouble === 'none' ? 0 : characters.length / 2;
    channel.begin(200, { 'content-type': 'application/json' });
    await channel.send(characters.slice(0, cut).join(''));
    if (await this.#breaks(trouble, wire, channel)) return;
    await channel.send(characters.slice(cut).join(''));
    channel.end();
  }

  /** Whether this is how the answer ends. */
  async #breaks(trouble: Trouble, wire: Wire, channel: Channel): Promise<boolean> {
    if (trouble === 'none' || trouble === 'silence_before') return false;
    await sleep(SETTLE_MS);
    if (trouble === 'silence_within') {
      await this.#silence(channel);
      return false;
    }
    if (trouble === 'stall' || trouble === 'replica_death') await channel.closed;
    else if (trouble === 'reset') channel.reset();
    else if (trouble === 'goaway') channel.goaway();
    else if (trouble === 'error_event') await channel.send(errorEventOn(wire));
    // Of a clean close, and behind an error event.
    channel.end();
    return true;
  }

  /** Ends early if the gateway leaves. */
  async #silence(channel: Channel): Promise<void> {
    const over = new AbortController();
    const silence = sleep(this.#options.silence_ms, undefined, { signal: over.signal }).catch(() => {});
    await Promise.race([silence, channel.closed]);
    over.abort();
  }
}

/** `undefined` if it is too long. */
async function textOf(request: AnyRequest): Promise<string | undefined> {
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const part of request as AsyncIterable<Buffer>) {
    parts.push(part);
    bytes += part.length;
    if (bytes > REQUEST_BYTES_MAX) return undefined;
  }
  return Buffer.concat(parts).toString();
}

async function tell(steps: readonly Step[], telling: Telling, channel: Channel): Promise<void> {
  for (const step of steps) {
    await channel.send(telling.step(step));
    await sleep(PACE_MS);
  }
}

async function refuse(channel: Channel, wire: Wire, status: number): Promise<void> {
  const headers = {
    'content-type': 'application/json',
    ...(status === 429 && { 'retry-after': RETRY_AFTER_S }),
  };
  channel.begin(status, headers);
  await channel.send(JSON.stringify(errorOn(wire, status)));
  channel.end();
}
