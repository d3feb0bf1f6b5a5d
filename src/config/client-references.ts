import { hostnameOf, isLoopback } from '../lib/host-name.ts';
import type { ClientConfiguration, Configuration } from './configuration.ts';
import { formatPath } from './key-path.ts';
import { type Problem, suggestion } from './problem.ts';

/** What is wrong with clients that a schema cannot say. Never holds a token. */
export function clientFaults({ clients, upstreams, routes }: Configuration): Problem[] {
  const models = routes.map(({ model }) => model);
  return clients.flatMap((client, index) => {
    const before = clients.slice(0, index);
    const faults: [readonly (string | number)[], string | undefined][] = [
      [['name'], repetitionFault('name', client, before)],
      [['token'], repetitionFault('token', client, before) ?? tokenFault(client, upstreams)],
      ...(client.routes ?? []).map((route, place): [(string | number)[], string | undefined] => [
        ['routes', place],
        routeFault(route, models),
      ]),
    ];
    return faults.flatMap(([key, message]) =>
      message === undefined ? [] : [{ path: formatPath(['clients', index, ...key]), message }],
    );
  });
}

function repetitionFault(
  key: 'name' | 'token',
  client: ClientConfiguration,
  before: readonly ClientConfiguration[],
): string | undefined {
  const same = before.findIndex((other) => other[key] === client[key]);
  return same === -1 ? undefined : `is the ${key} of clients[${same}], too.`;
}

/** As it comes in a header, whole: spaces around it are not part of it there, and what precedes one is a scheme. */
function tokenFault(
  { token }: ClientConfiguration,
  upstreams: Configuration['upstreams'],
): string | undefined {
  if (!/^[\x21-\x7e]+$/.test(token)) return 'must be of visible ASCII characters, without spaces.';
  const spent = Object.keys(upstreams).find((name) => upstreams[name]?.api_key === token);
  return spent && `is upstreams.${spent}.api_key, which clients are not to have; make one of its own.`;
}

function routeFault(route: string, models: readonly string[]): string | undefined {
  if (models.includes(route)) return undefined;
  return `no route has the model "${route}".${suggestion(route, models)}`;
}

/** Headers that providers, HTTP or this program have a use for. */
const OTHER_USE =
  /^(accept|authorization|connection|cookie|expect|host|idempotency-key|last-event-id|origin|te|traceparent|tracestate|trailer|upgrade|user-agent|via|x-amz-security-token|(.*-)?api-key|(accept|anthropic|cf-aig|content|holdfast|keep|openai|proxy|sec|transfer)-.*)$/i;

export function ownerFault({ owner: { header } }: Configuration): string | undefined {
  return header !== undefined && OTHER_USE.test(header)
    ? 'means something else; have the front set one of its own, like x-user-id.'
    : undefined;
}

/** What every process that reaches the port can do, and upstreams that clients are not asked for a token for. */
export function accessDoubts({ upstreams, clients, owner, listen: { host } }: Configuration): string[] {
  const isOpen = clients.length === 0 && !isLoopback(hostnameOf(host));
  const names =
    isOpen && owner.header !== undefined
      ? [
          `owner.header: everyone who reaches ${host} can name an owner, and have the runs of that one; have only the front reach it, or give the front a token under clients.`,
        ]
      : [];
  const spends = Object.entries(upstreams).flatMap(([name, upstream]) => {
    if (isOpen && upstream.api_key !== undefined)
      return `listen.host: everyone who reaches ${host} can spend upstreams.${name}.api_key; name the clients that may under clients, or listen on 127.0.0.1.`;
    if (clients.length > 0 && upstream.api_key === undefined)
      return `upstreams.${name}: has no api_key, so requests for it need no token of a client; where the server asks for no key, configure any.`;
    return [];
  });
  return [...names, ...spends];
}
