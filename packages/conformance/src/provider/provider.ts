import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { createSecureServer, type Http2SecureServer } from 'node:http2';
import type { AddressInfo, Socket } from 'node:net';
import { text as readText } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { answerOf, cutIn, stepsOf } from '../answer.ts';
import type { Case, Wire } from '../cases.ts';
import { randomOf } from '../random.ts';
import { type AnyRequest, type AnyResponse, Channel } from './channel.ts';
import { fieldOf, situationOf } from './situation.ts';
import { documentOn, errorEventOn, errorOn, tellingOn } from './telling.ts';

/** Between two events, so that a gateway sees a stream. */
const PACE_MS = 2;
/** Before a cut: a reset takes with it what the gateway has not read yet, so give it the time to. */
const SETTLE_MS = 1000;
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
    if (Number(request.headers['content-length'] ?? 0) > REQUEST_BYTES_MAX)
      return refuse(channel, 'chat', 413);
    const said = await readText(request);
    const asked = this.#cases.get(MARKER.exec(said)?.[1] ?? '');
    if (!wire || !asked) return refuse(channel, wire ?? 'chat', 404);
    const attempt = this.requestsOf(asked) + 1;
    this.#requests.set(asked.id, attempt);
    await this.#answer(asked, wire, JSON.parse(said), attempt, channel);
  }

  /** `wire` is that of the gateway's request: it may translate. */
  async #answer(asked: Case, wire: Wire, body: unknown, attempt: number, channel: Channel): Promise<void> {
    const { seed, prefill } = this.#options;
    const answer = answerOf(asked, seed);
    const { said, prefilled } = situationOf(wire, body, answer.text);
    if (prefilled && (prefill === 'refuses' || /\s$/.test(lastText(wire, body))))
      if (wire === 'messages' || prefill === 'refuses') return refuse(channel, wire, 400);
    const trouble = attempt === 1 || asked.always ? asked.trouble : 'none';
    if (trouble.startsWith('http_')) return refuse(channel, wire, Number(trouble.slice('http_'.length)));
    const envelope = {
      id: `${seed}x${++this.#serial}`,
      model: String(fieldOf(body, 'model')),
      has_calls: answer.calls.length > 0,
      usage: fieldOf(fieldOf(body, 'stream_options'), 'include_usage') === true,
    };
    if (trouble === 'silence_before') await this.#silence(channel);
    const rest = { text: answer.text.slice(said), calls: answer.calls };
    if (fieldOf(body, 'stream') !== true) {
      channel.begin(200, { 'content-type': 'application/json' });
      const document = documentOn(wire, envelope, rest);
      // By characters: half of a surrogate pair cannot be sent.
      const characters = [...document];
      const half = characters.slice(0, characters.length / 2).join('');
      await channel.send(trouble === 'none' ? document : half);
      return this.#trouble(trouble, wire, channel, () => Promise.resolve());
    }
    channel.begin(200, { 'content-type': 'text/event-stream; charset=utf-8' });
    const telling = tellingOn(wire, envelope);
    const steps = stepsOf(answer, said, randomOf(seed, `${asked.id} ${said}`));
    // Attempts after the first make no progress where all of them fail: one that does may be allowed more of them.
    const cut = attempt > 1 ? 0 : cutIn(steps, asked.state);
    const tell = async (from: number, to?: number) => {
      for (const step of steps.slice(from, to)) {
        await channel.send(telling.step(step));
        await sleep(PACE_MS);
      }
    };
    await channel.send(telling.begin());
    if (trouble !== 'none') await tell(0, cut);
    await this.#trouble(trouble, wire, channel, async () => {
      await tell(trouble === 'none' ? 0 : cut);
      await channel.send(telling.end());
    });
  }

  async #trouble(
    trouble: Case['trouble'],
    wire: Wire,
    channel: Channel,
    goOn: () => Promise<void>,
  ): Promise<void> {
    if (trouble !== 'none') await sleep(SETTLE_MS);
    switch (trouble) {
      case 'reset':
        return channel.reset();
      case 'goaway':
        return channel.goaway();
      case 'error_event':
        await channel.send(errorEventOn(wire));
        return channel.end();
      case 'stall':
      case 'replica_death':
        await channel.closed;
        return;
      case 'silence_within':
        await this.#silence(channel);
        break;
      case 'clean_close':
        return channel.end();
      default:
        break;
    }
    await goOn();
    channel.end();
  }

  /** Ends early if the gateway leaves. */
  async #silence(channel: Channel): Promise<void> {
    const over = new AbortController();
    const silence = sleep(this.#options.silence_ms, undefined, { signal: over.signal }).catch(() => {});
    await Promise.race([silence, channel.closed]);
    over.abort();
  }
}

function lastText(wire: Wire, body: unknown): string {
  const turns = fieldOf(body, wire === 'responses' ? 'input' : 'messages');
  const content = Array.isArray(turns) ? fieldOf(turns.at(-1), 'content') : '';
  if (typeof content === 'string') return content;
  const part: unknown = Array.isArray(content) ? content.at(-1) : undefined;
  return String(fieldOf(part, 'text') ?? '');
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
