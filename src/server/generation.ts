import { isDeepStrictEqual } from 'node:util';
import type { FastifyInstance } from 'fastify';
import { replicasOf } from '../checkpoint/owner.ts';
import type { Salvage } from '../checkpoint/salvage.ts';
import type { Configuration } from '../config/configuration.ts';
import type { WebhookEndpoint } from '../config/webhook-endpoints.ts';
import { ActiveWork, type ApiContext } from '../proxy/api/api-context.ts';
import { PassThrough } from '../proxy/api/passthrough.ts';
import { continueUnattended } from '../proxy/api/return.ts';
import { RunLookup } from '../proxy/resume/run-lookup.ts';
import type { RunContext } from '../proxy/run/context/run-context.ts';
import { observers, type RunObserver } from '../proxy/run/context/run-observer.ts';
import { NoticeBoard } from '../proxy/run/notices/notice-board.ts';
import { createRunSalvage } from '../proxy/run/run-salvage.ts';
import { TaskSteps } from '../proxy/tasks/task-steps.ts';
import { MaskingTransport } from '../proxy/upstream/masking-transport.ts';
import { RouteTable } from '../proxy/upstream/route-table.ts';
import { StreamRefusals } from '../proxy/upstream/stream-refusals.ts';
import { HealthRegistry } from '../proxy/upstream/target-health.ts';
import type { Transport } from '../proxy/upstream/transport.ts';
import { CapabilityMemory } from '../proxy/wires/dialects/capability-memory.ts';
import { StoredCapabilities } from '../proxy/wires/dialects/stored-capabilities.ts';
import { TaskWebhooks } from '../webhooks/task-webhooks.ts';
import { WebhookDelivery } from '../webhooks/webhook-delivery.ts';
import { createApi } from './api.ts';

/** A configuration and its open resources. */
export interface GenerationParts {
  /** Renewed keys are current whenever they are read. */
  readonly configuration: Configuration;
  readonly transport: Transport;
  readonly webhooks?: readonly WebhookEndpoint[];
  readonly observers?: readonly RunObserver[];
}

/** Shared by all generations of a replica. Independent of settings that a reload may change. */
export interface ReplicaParts
  extends Omit<
    ApiContext,
    | 'configuration'
    | 'transport'
    | 'capabilities'
    | 'observer'
    | 'passThrough'
    | 'models'
    | 'healths'
    | 'streamRefusals'
    | 'work'
    | 'lookup'
    | 'steps'
    | 'taskObserver'
    | 'notices'
  > {
  /** Observers of the runs of all generations. */
  readonly observers: readonly RunObserver[];
  draining(): boolean;
  closing(): boolean;
}

/** Sends task events to webhook endpoints. */
interface Telling {
  readonly delivery: WebhookDelivery;
  readonly tasks: TaskWebhooks;
}

/**
 * Everything created from one configuration. It handles the requests that arrive while it is current, and their runs,
 * to the end, even after another configuration has replaced it.
 */
export class Generation {
  readonly configuration: Configuration;
  readonly context: ApiContext;
  readonly api: FastifyInstance;
  readonly salvage: Salvage;
  readonly telling: Telling | undefined;
  /**
   * Tracks requests from their headers to the end of their answers. Runs that outlive their clients are in
   * `context.work`.
   */
  readonly requests = new ActiveWork();
  readonly #parts: GenerationParts;

  /** `before`: the generation to replace. What it learnt about unchanged upstreams is kept. */
  constructor(parts: GenerationParts, replica: ReplicaParts, before?: Generation) {
    const { configuration } = parts;
    const { log, time, registry } = replica;
    this.#parts = parts;
    this.configuration = configuration;
    this.telling = before?.tellsAs(parts) ? before.telling : tellingOf(parts, replica);
    const transport = new MaskingTransport(parts.transport);
    const context: RunContext = {
      ...replica,
      configuration,
      transport,
      capabilities: capabilitiesOf(configuration, replica, before),
      observer: observers([
        ...replica.observers,
        ...(this.telling ? [this.telling.tasks] : []),
        ...(parts.observers ?? []),
      ]),
    };
    const lookup = new RunLookup(context, registry);
    this.context = {
      ...replica,
      ...context,
      work: new ActiveWork(),
      lookup,
      steps: new TaskSteps(context, lookup, replica.taskRules, this.telling?.tasks),
      taskObserver: this.telling?.tasks,
      notices: new NoticeBoard(context),
      passThrough: new PassThrough(configuration, transport, log),
      models: new RouteTable(configuration),
      healths: new HealthRegistry(
        configuration,
        before && {
          registry: before.context.healths,
          isSame: (name) =>
            isDeepStrictEqual(configuration.upstreams[name], before.configuration.upstreams[name]),
        },
      ),
      streamRefusals: new StreamRefusals(time),
    };
    this.api = createApi({ ...replica, ...this.context, requests: this.requests });
    this.salvage = createRunSalvage(context, async (orphan) =>
      replica.draining() ? 'later' : continueUnattended(orphan, this.context),
    );
  }

  /** The number of active requests and runs. */
  get active(): number {
    return this.requests.count + this.context.work.count;
  }

  /** Whether webhooks would be the same under `parts`. */
  tellsAs({ transport, webhooks, configuration }: GenerationParts): boolean {
    const { transport: own, webhooks: ownWebhooks } = this.#parts;
    return (
      transport === own &&
      isDeepStrictEqual(webhooks, ownWebhooks) &&
      isDeepStrictEqual(configuration.clients, this.configuration.clients)
    );
  }

  /** Resolves once no request or run is active. The caller then closes the generation. */
  async ended(): Promise<void> {
    while (this.active > 0) {
      await this.requests.ended();
      await this.context.work.ended();
    }
  }
}

/** Without endpoints, tasks aren't observed. */
function tellingOf(
  { configuration, transport, webhooks = [] }: GenerationParts,
  { metrics, log, time, random, secret }: ReplicaParts,
): Telling | undefined {
  if (webhooks.length === 0) return undefined;
  const delivery = new WebhookDelivery(webhooks, { transport, metrics, log, time, random });
  return { delivery, tasks: new TaskWebhooks(delivery, { configuration, secret, time }) };
}

/** Keeps the memory unless addresses have changed. A new one finds other processes' notes in the store. */
function capabilitiesOf(
  { upstreams }: Configuration,
  { store, secret, time, log }: ReplicaParts,
  before: Generation | undefined,
): CapabilityMemory {
  if (before && isDeepStrictEqual(addressesOf(upstreams), addressesOf(before.configuration.upstreams)))
    return before.context.capabilities;
  const notes = { notes: store.notes, owner: replicasOf(secret), upstreams, time, log };
  return new CapabilityMemory(time, new StoredCapabilities(notes));
}

const addressesOf = (upstreams: Configuration['upstreams']) =>
  Object.entries(upstreams).map(([name, { base_url, dialect }]) => [name, base_url, dialect]);
