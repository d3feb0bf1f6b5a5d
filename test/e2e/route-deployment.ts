import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Provider, startProvider } from '../provider/provider.ts';
import type { RecordedRequest } from '../provider/recorded-request.ts';
import { PROMPT_END, textOf } from '../provider/request.ts';
import type { Plan } from '../provider/script.ts';
import { PROVIDER_WIRES, wireAt } from '../provider/wires/registry.ts';
import { HoldfastProcess } from './holdfast-process.ts';

/** The two providers' answers to one question. */
export interface Plans {
  readonly first: Plan;
  readonly second: Plan;
}

/** A route with two targets, one at each provider; the keys are those of the configuration. */
export interface TwoTargets {
  readonly first?: object;
  readonly second?: object;
  /** Settings of the upstream behind the first target. */
  readonly upstream?: object;
  /** Settings of the route itself. */
  readonly settings?: object;
}

/** Processes that share a file store, with two providers behind every route. */
export class RouteDeployment {
  readonly replicas: HoldfastProcess[] = [];
  readonly first: Provider;
  readonly second: Provider;
  readonly #directory = mkdtempSync(join(tmpdir(), 'holdfast-e2e-'));
  readonly #plans = new Map<string, Plans>();

  private constructor(first: Provider, second: Provider) {
    this.first = first;
    this.second = second;
    first.respond((request) => this.#plans.get(questionOf(request))?.first);
    second.respond((request) => this.#plans.get(questionOf(request))?.second);
  }

  /** `routes` is keyed by model. What one route learns about its first target doesn't affect the other routes. */
  static async start(
    routes: Readonly<Record<string, TwoTargets>>,
    sections: object = {},
    replicas = 1,
  ): Promise<RouteDeployment> {
    const [first, second] = await Promise.all([startProvider(), startProvider()]);
    const deployment = new RouteDeployment(first, second);
    const upstreams = Object.entries(routes).map(([, { upstream }], index) => [
      `first_${index}`,
      { base_url: first.url, dialect: 'vllm', ...upstream },
    ]);
    const configuration = {
      upstreams: {
        ...Object.fromEntries(upstreams),
        second: { base_url: second.url, dialect: 'vllm', api_key: 'key of the second' },
      },
      routes: Object.entries(routes).map(([model, route], index) => ({
        model,
        ...route.settings,
        targets: [
          { upstream: `first_${index}`, ...route.first },
          { upstream: 'second', ...route.second },
        ],
      })),
      checkpoint: { store: `file:${join(deployment.#directory, 'store')}`, lease_ms: 1000 },
      ...sections,
    };
    for (let started = 0; started < replicas; started++) {
      deployment.replicas.push(await HoldfastProcess.start(configuration));
    }
    return deployment;
  }

  get holdfast(): HoldfastProcess {
    const [replica] = this.replicas;
    if (!replica) throw new Error('nothing was started');
    return replica;
  }

  /** Sets the answers to this first user message. A later plan replaces an earlier one. */
  plan(question: string, plans: Plans): void {
    this.#plans.set(question, plans);
  }

  /** The requests that each provider received for a question, in order. */
  requests(question: string): { readonly first: RecordedRequest[]; readonly second: RecordedRequest[] } {
    const about = (provider: Provider) =>
      provider.requests.filter((request) => questionOf(request) === question);
    return { first: about(this.first), second: about(this.second) };
  }

  /** Rejects if a process logged errors or warnings, or a provider couldn't perform a fault. */
  async close(): Promise<void> {
    try {
      await Promise.all([...this.replicas, this.first, this.second].map((each) => each.close()));
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
