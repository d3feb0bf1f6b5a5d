import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Provider, startProvider } from '../provider/provider.ts';
import type { RecordedRequest } from '../provider/recorded-request.ts';
import { PROMPT_END, textOf } from '../provider/request.ts';
import type { Plan } from '../provider/script.ts';
import { PROVIDER_WIRES, wireAt } from '../provider/wires/registry.ts';
import { FIXTURES } from '../proxy/wires/dialects/fixture-registry.ts';
import { modelOf } from './deployment.ts';
import { HoldfastProcess } from './holdfast-process.ts';

/** One process with an upstream for each dialect, all served by a single provider that answers as planned. */
export class DialectDeployment {
  readonly #holdfast: HoldfastProcess;
  readonly #provider: Provider;
  readonly #directory: string;
  readonly #plans = new Map<string, Plan>();

  private constructor(holdfast: HoldfastProcess, provider: Provider, directory: string) {
    this.#holdfast = holdfast;
    this.#provider = provider;
    this.#directory = directory;
    provider.respond((request) => this.#plans.get(questionOf(request)));
  }

  /**
   * The client's name for the model selects the upstream. The provider gets the fixture's model name. For a name that
   * starts with the upstream and a slash, it gets that whole name, which makes it a separate model.
   */
  static async start(): Promise<DialectDeployment> {
    const provider = await startProvider();
    const directory = mkdtempSync(join(tmpdir(), 'holdfast-e2e-'));
    const fixtures = Object.entries(FIXTURES);
    const holdfast = await HoldfastProcess.start({
      upstreams: Object.fromEntries(
        fixtures.map(([name, { dialect }]) => [name, { base_url: provider.url, dialect }]),
      ),
      routes: fixtures.flatMap(([name, { model }]) => [
        { model: modelOf(name), targets: [{ upstream: name, model }] },
        { model: `${name}/*`, targets: [{ upstream: name }] },
      ]),
      recovery: { backoff_ms: 1, backoff_max_ms: 10 },
      checkpoint: { store: `file:${join(directory, 'store')}` },
    });
    return new DialectDeployment(holdfast, provider, directory);
  }

  /** The base URL for clients, ending in `/v1`. */
  get url(): string {
    return this.#holdfast.url;
  }

  /** Sets the answer to this first user message. Every run needs its own question. */
  plan(question: string, plan: Plan): void {
    if (this.#plans.has(question)) throw new Error(`there is a plan for ${question} already`);
    this.#plans.set(question, plan);
  }

  /** How many requests the provider received for a question. */
  requests(question: string): number {
    return this.#provider.requests.filter((request) => questionOf(request) === question).length;
  }

  /** Rejects if the process logged errors or warnings, or the provider couldn't perform a fault. */
  async close(): Promise<void> {
    try {
      await Promise.all([this.#holdfast.close(), this.#provider.close()]);
    } finally {
      rmSync(this.#directory, { recursive: true });
    }
  }
}

function questionOf({ path, body }: RecordedRequest): string {
  const wire = wireAt(path);
  const request = wire && PROVIDER_WIRES[wire].request(body);
  return textOf(request?.messages.find(({ role }) => role === 'user')).replace(PROMPT_END, '');
}
