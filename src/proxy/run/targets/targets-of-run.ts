import type { IncomingHttpHeaders } from 'node:http';
import { isRenewed, type UpstreamConfiguration } from '../../../config/configuration.ts';
import type { Time } from '../../../lib/time.ts';
import type { ProviderTool } from '../../../plans/transcript.ts';
import { type Headers, revivedRequestHeaders } from '../../upstream/headers.ts';
import type { ModelCompression, RouteTable } from '../../upstream/route-table.ts';
import type { RunTarget, Target } from '../../upstream/target.ts';
import type { HealthRegistry } from '../../upstream/target-health.ts';
import { chatWire } from '../../wires/chunks/chat-wire.ts';
import type { Run } from '../context/run.ts';

/** A run, or a request that will become one. */
interface ThreadOfOwner extends Pick<Run, 'owner'> {
  readonly thread?: string | undefined;
}

/** A conversation, and the oldest time at which its prompt cache still counts. */
export interface CachedConversation {
  /** See {@link conversationOf}. */
  readonly name: string;
  readonly since_ms: number;
}

/**
 * The targets of a run for `model`, each with its request headers. `all`: in order of preference; targets that have the
 * `conversation` in their prompt cache move to the front.
 */
export function targetsOfRun(
  first: Target,
  all: readonly Target[],
  headersFor: (upstream: UpstreamConfiguration) => RunTarget['headers'],
  healths: HealthRegistry,
  model: string,
  conversation?: CachedConversation,
): Pick<Run, 'target' | 'targets'> {
  const target = withHeaders(first, headersFor);
  if (all.length < 2) return { target };
  const targets = all.map((each) => withHeaders({ ...each, health: healths.of(each, model) }, headersFor));
  const isWarm = ({ health }: RunTarget): boolean =>
    conversation !== undefined && health?.hasCached(conversation.name, conversation.since_ms) === true;
  return { target, targets: targets.toSorted((one, other) => Number(isWarm(other)) - Number(isWarm(one))) };
}

/**
 * The conversation of a request for `model`; `undefined` if the route has no cache affinity, or the request has no
 * thread.
 */
export function cachedConversation(
  run: ThreadOfOwner,
  model: string,
  { models, time }: { readonly models: RouteTable; readonly time: Time },
): CachedConversation | undefined {
  const within_ms = models.cacheAffinityMs(model);
  const name = within_ms > 0 ? conversationOf(run) : undefined;
  return name === undefined ? undefined : { name, since_ms: time.now() - within_ms };
}

/** A thread's name, unique across clients; `undefined` without one. */
export const conversationOf = ({ owner, thread }: ThreadOfOwner): string | undefined =>
  thread === undefined ? undefined : JSON.stringify([owner, thread]);

/** Adds the request headers. If the upstream's key is renewed, they are computed on every read. */
function withHeaders<Asked extends Target>(
  target: Asked,
  headersFor: (upstream: UpstreamConfiguration) => RunTarget['headers'],
): Asked & Pick<RunTarget, 'headers'> {
  const { upstream } = target;
  if (!isRenewed(upstream)) return { ...target, headers: headersFor(upstream) };
  return {
    ...target,
    get headers() {
      return headersFor(upstream);
    },
  };
}

/** Compression settings, with the client's headers adapted for the summarising model. */
export function compressionOfRun(
  settings: ModelCompression | undefined,
  headers: IncomingHttpHeaders,
): Pick<Run, 'compression'> {
  if (!settings) return {};
  const { target } = settings;
  const headersFor = (upstream: UpstreamConfiguration) => summaryHeaders(upstream, headers);
  return { compression: { ...settings, target: withHeaders(target, headersFor) } };
}

function summaryHeaders(upstream: UpstreamConfiguration, headers: IncomingHttpHeaders): Headers {
  const sent = revivedRequestHeaders(headers, upstream, chatWire);
  // The client's wire may carry its credential in another header than chat completions.
  const key = sent.authorization ?? (sent['x-api-key'] && `Bearer ${String(sent['x-api-key'])}`);
  return key ? { ...sent, authorization: key } : sent;
}

/**
 * Whether this target accepts the results of provider tools. Only the provider that ran them does, with any of its
 * models and keys. Another one would refuse the items, or ignore them and run the tools again.
 */
export function takesBack(
  target: RunTarget,
  tools: readonly ProviderTool[],
  { targets = [target] }: Pick<Run, 'targets'>,
): boolean {
  const host = hostOf(target);
  return tools.every(({ upstream }) => {
    const authors = targets.filter(({ name }) => upstream === undefined || name === upstream);
    return authors.length > 0 && authors.every((author) => hostOf(author) === host);
  });
}

const hostOf = ({ upstream: { base_url } }: RunTarget): string => new URL(base_url).host;
