import { isDeepStrictEqual } from 'node:util';
import { changedSettings } from '../config/changed-settings.ts';
import type { Configuration, UpstreamConfiguration } from '../config/configuration.ts';
import { type ConnectionSettings, readConnections } from '../config/load.ts';
import { ConfigurationError, type Problem } from '../config/problem.ts';
import { readWebhooks, type WebhookEndpoint } from '../config/webhook-endpoints.ts';
import type { Transport } from '../proxy/upstream/transport.ts';
import { createUndiciTransport } from '../proxy/upstream/undici-transport.ts';
import { UpstreamKeys, type UpstreamKeysOptions } from '../proxy/upstream/upstream-keys.ts';

type Connections = Readonly<Record<string, ConnectionSettings>>;

/** A transport and the number of configurations that use it. */
interface SharedTransport {
  readonly transport: Transport;
  users: number;
}

/** A process's resources for one configuration: certificates, keys, signing secrets and connections to upstreams. */
export class Resources {
  /** The configuration as validated. */
  readonly configuration: Configuration;
  readonly webhooks: readonly WebhookEndpoint[];
  readonly #connections: Connections;
  readonly #keys: UpstreamKeys;
  readonly #shared: SharedTransport;

  private constructor(
    configuration: Configuration,
    connections: Connections,
    webhooks: readonly WebhookEndpoint[],
    keys: UpstreamKeys,
    shared: SharedTransport,
  ) {
    this.configuration = configuration;
    this.webhooks = webhooks;
    this.#connections = connections;
    this.#keys = keys;
    this.#shared = shared;
    shared.users++;
  }

  /**
   * Reads all files and obtains all keys. Reuses the connections of `before` if they would be the same. Rejects with a
   * {@link ConfigurationError} that lists every problem.
   */
  static async open(
    configuration: Configuration,
    options: UpstreamKeysOptions,
    before?: Resources,
  ): Promise<Resources> {
    const problems: Problem[] = [];
    const collect = (error: unknown): undefined => {
      if (!(error instanceof ConfigurationError)) throw error;
      problems.push(...error.problems);
    };
    const connections = resultOf(() => readConnections(configuration), collect);
    const webhooks = resultOf(() => readWebhooks(configuration), collect);
    const keys = await UpstreamKeys.open(configuration, options).catch(collect);
    if (!connections || !webhooks || !keys) {
      keys?.close();
      throw new ConfigurationError(problems);
    }
    const isSame = before && isDeepStrictEqual(comparable(connections), comparable(before.#connections));
    const shared = isSame ? before.#shared : { transport: createUndiciTransport(connections), users: 0 };
    return new Resources(configuration, connections, webhooks, keys, shared);
  }

  /** The configuration as requests use it, with current keys whenever they are read. */
  get current(): Configuration {
    return this.#keys.configuration;
  }

  get transport(): Transport {
    return this.#shared.transport;
  }

  /** The names of settings that differ, including those of files with different content. */
  changedTo(other: Resources): readonly string[] {
    return changedSettings(this.#compared, other.#compared);
  }

  /** Stops renewing keys and closes the connections, unless another configuration uses them. */
  async close(): Promise<void> {
    this.#keys.close();
    if (--this.#shared.users === 0) await this.#shared.transport.close();
  }

  get #compared(): object {
    const { upstreams, webhooks } = this.configuration;
    const withFiles = ([name, upstream]: [string, UpstreamConfiguration]) => [
      name,
      { ...upstream, ...this.#connections[new URL(upstream.base_url).origin]?.files },
    ];
    return {
      ...this.configuration,
      upstreams: Object.fromEntries(Object.entries(upstreams).map(withFiles)),
      webhooks: webhooks.map((webhook, index) => ({ ...webhook, key: this.webhooks[index]?.key })),
    };
  }
}

function resultOf<Value>(read: () => Value, otherwise: (error: unknown) => undefined): Value | undefined {
  try {
    return read();
  } catch (error) {
    return otherwise(error);
  }
}

/** Compares the files of TLS contexts, because the contexts themselves can't be compared. */
const comparable = (connections: Connections) =>
  Object.entries(connections)
    .map(([origin, { proxy, files }]) => ({ origin, proxy, files }))
    .toSorted((one, other) => one.origin.localeCompare(other.origin));
