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

/** A configuration, and what is open for it. */
export interface GenerationParts {
  /** In it, keys that are renewed are the ones that there are whenever they are read. */
  readonly configuration: Configuration;
  readonly transport: Transport;
  readonly webhooks?: readonly WebhookEndpoint[];
  readonly observers?: readonly RunObserver[];
}

/** What all generations of a replica share. None of it depends on settings that a reload may change. */
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
  /** Observe the runs of all generations. */
  readonly observers: readonly RunObserver[];
  draining(): boolean;
  closing(): boolean;
}

/** Tells the endpoints of webhooks about tasks. */
interface Telling {
  readonly delivery: WebhookDelivery;
  readonly tasks: TaskWebhooks;
}

/**
 * Everything that is made of one configuration. Requests that come while it is the current one are handled by it to their
 * end, as are their runs, whichever configuration has taken its place meanwhile.
 */
export class Generation {
  readonly configuration: Configuration;
  readonly context: ApiContext;
  readonly api: FastifyInstance;
  readonly salvage: Salvage;
  readonly telling: Telling | undefined;
  /** From their headers to the end of their answers; runs that outlive their clients are in `context.work`. */
  readonly requests = new ActiveWork();
  readonly #parts: GenerationParts;

  /** `before`: the one whose place it takes. What was learnt about upstreams that are the same is not forgotten. */
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

  /** Requests and runs under way. */
  get active(): number {
    return this.requests.count + this.context.work.count;
  }

  /** Under `parts`, webhooks would be what they are under this one. */
  tellsAs({ transport, webhooks, configuration }: GenerationParts): boolean {
    const { transport: own, webhooks: ownWebhooks } = this.#parts;
    return (
      transport === own &&
      isDeepStrictEqual(webhooks, ownWebhooks) &&
      isDeepStrictEqual(configuration.clients, this.configuration.clients)
    );
  }

  /** Resolves when no request and no run of it is under way any more. It is the caller's to close it then. */
  async ended(): Promise<void> {
    while (this.active > 0) {
      await this.requests.ended();
      await this.context.work.ended();
    }
  }
}

/** Without endpoints there is nothing that observes tasks. */
function tellingOf(
  { configuration, transport, webhooks = [] }: GenerationParts,
  { metrics, log, time, random, secret }: ReplicaParts,
): Telling | undefined {
  if (webhooks.length === 0) return undefined;
  const delivery = new WebhookDelivery(webhooks, { transport, metrics, log, time, random });
  return { delivery, tasks: new TaskWebhooks(delivery, { configuration, secret, time }) };
}

/** What other processes have noted is found again in the store; only a change of addresses makes that necessary. */
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
