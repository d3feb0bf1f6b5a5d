import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { HoldfastProcess } from '../e2e/holdfast-process.ts';
import { type Provider, startProvider } from '../provider/provider.ts';
import { redisBinary } from '../redis/binaries.ts';
import { RedisServer } from '../redis/redis-server.ts';
import { ROOT } from './pages.ts';

/** The model's answer to every client, cut once along the way. */
export const ANSWER = 'A holdfast is the organ with which kelp grips the rock.';
const CUT = { kind: 'reset', at: { event: 9 } } as const;

/** Addresses of replicas in the documentation. */
const REPLICA = /https?:\/\/(127\.0\.0\.1|localhost|holdfast(-\d)?|load-balancer|gateway)(:8080)(?!\d)/g;
const ADMIN = /https?:\/\/(127\.0\.0\.1|localhost|holdfast(-\d)?):9090(?!\d)/g;
const PROVIDER = /https:\/\/(api\.openai\.com|api\.anthropic\.com|llm\.example\.com)\/v1/g;
const REDIS = /redis:\/\/(?:[\w-]+:[^@\s]+@)?redis(?::6379)?/g;

/** A working version of what the pages describe: a provider that fails, a replica in front of it, and Redis. */
export class StandIn {
  readonly directory: string;
  readonly #provider: Provider;
  readonly #holdfast: HoldfastProcess;
  readonly #redis: RedisServer | undefined;
  #programs = 0;

  private constructor(provider: Provider, holdfast: HoldfastProcess, redis: RedisServer | undefined) {
    this.#provider = provider;
    this.#holdfast = holdfast;
    this.#redis = redis;
    this.directory = mkdtempSync(join(tmpdir(), 'holdfast-docs-'));
    // Let programs import what the repository has installed, and the package itself.
    const modules = join(this.directory, 'node_modules');
    mkdirSync(modules);
    for (const name of readdirSync(join(ROOT, 'node_modules')))
      if (!name.startsWith('.')) symlinkSync(join(ROOT, 'node_modules', name), join(modules, name));
    symlinkSync(ROOT, join(modules, 'holdfast'));
    // The client package is compiled from the same source.
    const client = join(modules, 'holdfast-client');
    mkdirSync(client);
    symlinkSync(join(ROOT, 'clients/javascript/package.json'), join(client, 'package.json'));
    symlinkSync(join(ROOT, 'dist'), join(client, 'dist'));
  }

  static async start(): Promise<StandIn> {
    const binary = await redisBinary();
    const provider = await startProvider();
    // Cut every request for a new answer, and complete those that continue one.
    provider.respond((request) => {
      const isCut = !JSON.stringify(request.body).includes(ANSWER.slice(0, 10));
      return {
        parts: [{ text: ANSWER }],
        faults: isCut ? Array(99).fill(CUT) : [],
        continuation: 'obedient',
      };
    });
    const holdfast = await HoldfastProcess.start({
      upstreams: { provider: { base_url: provider.url } },
      recovery: { backoff_ms: 1, backoff_max_ms: 10 },
    });
    const redis = 'missing' in binary ? undefined : await RedisServer.start({ binary: binary.path });
    return new StandIn(provider, holdfast, redis);
  }

  /** How many requests for answers the provider has received. */
  get requests(): number {
    return this.#provider.requests.length;
  }

  get redisPort(): number | undefined {
    return this.#redis?.port;
  }

  /** Replaces the addresses in a text with the ones that work here. */
  located(text: string): string {
    return text
      .replace(REPLICA, new URL(this.#holdfast.url).origin)
      .replace(ADMIN, this.#holdfast.adminUrl)
      .replace(PROVIDER, this.#provider.url)
      .replace(REDIS, this.#redis ? `redis://127.0.0.1:${this.#redis.port}` : '$&');
  }

  /** Creates an empty directory from which Node resolves the packages. */
  program(): string {
    const directory = join(this.directory, `program-${this.#programs++}`);
    mkdirSync(directory);
    return directory;
  }

  async close(): Promise<void> {
    await Promise.all([this.#holdfast.close(), this.#provider.close(), this.#redis?.stop()]);
    rmSync(this.directory, { recursive: true });
  }
}
