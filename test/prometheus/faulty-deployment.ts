import { HoldfastProcess } from '../e2e/holdfast-process.ts';
import { type Provider, startProvider } from '../provider/provider.ts';
import type { RecordedRequest } from '../provider/recorded-request.ts';
import { PROMPT_END, textOf } from '../provider/request.ts';
import type { Plan } from '../provider/script.ts';
import { PROVIDER_WIRES, wireAt } from '../provider/wires/registry.ts';
import { NO_UPSTREAM_URL } from '../replica.ts';
import { TROUBLES } from './troubles.ts';

const SECRET = 's'.repeat(32);
/** Short enough for a test, and long enough for a heartbeat on a busy machine. */
const LEASE_MS = 1000;
/** Later than any client resumes, even on a busy machine. */
const SALVAGE_AFTER_MS = 5000;
/** A long answer. */
const WORDS = Array.from({ length: 400 }, (_, index) => `w${index} 🌊`).join(' ');

/** A slow answer, which leaves time to kill the replica that delivers it. */
export const LONG: Plan = { parts: [{ text: WORDS }], delay_ms: 20, prefill: 'vllm' };

/** Replicas that share a store, and a provider that causes every kind of trouble. */
export class FaultyDeployment {
  readonly replicas: readonly HoldfastProcess[];
  readonly #provider: Provider;

  private constructor(replicas: readonly HoldfastProcess[], provider: Provider) {
    this.replicas = replicas;
    this.#provider = provider;
  }

  static async start(store: string, count: number): Promise<FaultyDeployment> {
    const provider = await startProvider({ record: false });
    provider.respond((request) => planOf(request));
    const base_url = provider.url;
    const configuration = {
      secret: SECRET,
      upstreams: {
        main: { base_url, dialect: 'vllm' },
        plain: { base_url },
        impatient: { base_url, clocks: { first_byte_ms: 1000, first_token_ms: 1000, idle_ms: 300 } },
        down: { base_url: NO_UPSTREAM_URL },
      },
      routes: [
        ...['main', 'plain', 'impatient'].map((upstream) => ({
          model: `${upstream}-model`,
          targets: [{ upstream }],
        })),
        { model: 'pair-model', targets: [{ upstream: 'down' }, { upstream: 'main' }] },
      ],
      recovery: { backoff_ms: 1, backoff_max_ms: 10 },
      breaker: { failures: 3, open_ms: 2000, open_max_ms: 4000 },
      checkpoint: { store, lease_ms: LEASE_MS, on_unreachable: 'warn' },
      resume: { salvage_after_ms: SALVAGE_AFTER_MS },
      metrics: { gen_ai: true },
    };
    const replicas = await Promise.all(
      Array.from({ length: count }, () => HoldfastProcess.start(configuration)),
    );
    return new FaultyDeployment(replicas, provider);
  }

  /** The addresses to scrape. */
  get admins(): readonly string[] {
    return this.replicas.map(({ adminUrl }) => new URL(adminUrl).host);
  }

  async close(): Promise<void> {
    await Promise.all([...this.replicas, this.#provider].map((each) => each.close()));
  }
}

/** A question is the name of a trouble, followed by a number. */
function planOf({ path, body }: RecordedRequest): Plan | undefined {
  const wire = wireAt(path);
  const request = wire && PROVIDER_WIRES[wire].request(body);
  const question = textOf(request?.messages.find(({ role }) => role === 'user')).replace(PROMPT_END, '');
  const name = question.replace(/ #\d+$/, '');
  return name === 'long' ? LONG : TROUBLES[name]?.plan;
}
