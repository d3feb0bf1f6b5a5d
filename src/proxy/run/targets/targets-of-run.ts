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

/** Of a run, or of a request that is to become one. */
interface ThreadOfOwner extends Pick<Run, 'owner'> {
  readonly thread?: string | undefined;
}

/** A conversation, and since when a prompt cache that has it counts. */
export interface CachedConversation {
  /** See {@link conversationOf}. */
  readonly name: string;
  readonly since_ms: number;
}

/**
 * Where a run for `model` is sent, with the request headers as each of the targets is to have them. `all`: in order of
 * preference; those that have the `conversation` in their prompt cache are put before the others.
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

/** That of a request for `model`; `undefined` where conversations do not go back to a cache, or it belongs to none. */
export function cachedConversation(
  run: ThreadOfOwner,
  model: string,
  { models, time }: { readonly models: RouteTable; readonly time: Time },
): CachedConversation | undefined {
  const within_ms = models.cacheAffinityMs(model);
  const name = within_ms > 0 ? conversationOf(run) : undefined;
  return name === undefined ? undefined : { name, since_ms: time.now() - within_ms };
}

/** What a thread is called among those of all clients; `undefined` without one. */
export const conversationOf = ({ owner, thread }: ThreadOfOwner): string | undefined =>
  thread === undefined ? undefined : JSON.stringify([owner, thread]);

/** With the headers for it: where its key is renewed, as they are whenever they are read. */
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

/** With the headers of the client's request as the model that summarises is to have them. */
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
  // On the wire of the client its credential may be in another place than on the one of chat completions.
  const key = sent.authorization ?? (sent['x-api-key'] && `Bearer ${String(sent['x-api-key'])}`);
  return key ? { ...sent, authorization: key } : sent;
}

/**
 * Whether this target takes back what the tools of a provider have done: only the provider that ran them does, by
 * whichever of its models and keys it is asked. Another one would refuse the items, or pass over them and run the tools.
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
