import { hostnameOf, isLoopback } from '../lib/host-name.ts';
import { type ClientConfiguration, type Configuration, isKeyed, keyPathOf } from './configuration.ts';
import { formatPath } from './key-path.ts';
import { type Problem, suggestion } from './problem.ts';

/** Faults of clients that the schema can't express. Never includes a token. */
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

/**
 * The token must arrive unchanged in a header, where surrounding spaces are dropped and a preceding word is a scheme.
 */
function tokenFault(
  { token }: ClientConfiguration,
  upstreams: Configuration['upstreams'],
): string | undefined {
  if (!/^[\x21-\x7e]+$/.test(token)) return 'must be of visible ASCII characters, without spaces.';
  const spent = Object.entries(upstreams).find(([, { api_key, headers = {} }]) =>
    [api_key, ...Object.values(headers)].includes(token),
  );
  return spent && `is ${keyPathOf(...spent)}, which clients are not to have; make one of its own.`;
}

function routeFault(route: string, models: readonly string[]): string | undefined {
  if (models.includes(route)) return undefined;
  return `no route has the model "${route}".${suggestion(route, models)}`;
}

/** Headers that providers, HTTP or this program already use. */
const OTHER_USE =
  /^(accept|authorization|connection|cookie|expect|host|idempotency-key|last-event-id|origin|te|traceparent|tracestate|trailer|upgrade|user-agent|via|x-amz-security-token|(.*-)?api-key|(accept|anthropic|cf-aig|content|holdfast|keep|openai|proxy|sec|transfer)-.*)$/i;

/** Faults of the owner settings that the schema can't express. */
export function ownerFaults({ owner, clients }: Configuration): Problem[] {
  const { header, claim, jwks_url } = owner;
  const faults: [string, string | undefined][] =
    claim === undefined
      ? (['jwks_url', 'issuer', 'audience'] as const).map((key) => [
          key,
          owner[key] && 'says nothing without owner.claim; set that, too.',
        ])
      : [
          ['claim', claimFault(header, clients)],
          ['jwks_url', keysFault(jwks_url)],
        ];
  if (header !== undefined && OTHER_USE.test(header))
    faults.push(['header', 'means something else; have the front set one of its own, like x-user-id.']);
  return faults.flatMap(([key, message]) =>
    message === undefined ? [] : [{ path: formatPath(['owner', key]), message }],
  );
}

function claimFault(header: string | undefined, clients: readonly ClientConfiguration[]): string | undefined {
  if (header !== undefined)
    return 'cannot be used with owner.header; a run has one owner, so remove one of them.';
  return clients.length > 0
    ? 'cannot be used with clients, whose tokens come where the JWT would; remove one of them.'
    : undefined;
}

/** Keys fetched over an unprotected network could be an attacker's. */
function keysFault(jwks_url: string | undefined): string | undefined {
  if (jwks_url === undefined)
    return 'is missing; owner.claim needs the URL of the keys that the tokens are signed with.';
  const { protocol, hostname = '', username, password } = URL.parse(jwks_url) ?? {};
  if (username || password) return 'must not hold credentials; public keys need none.';
  return protocol === 'https:' || (protocol === 'http:' && isLoopback(hostname))
    ? undefined
    : 'must be an https: URL, like https://login.example.com/.well-known/jwks.json; http: only for an address of this machine.';
}

/**
 * Warns about access that is open to every process that can reach the port, and about upstreams that need no client
 * token.
 */
export function accessDoubts({ upstreams, clients, owner, listen: { host } }: Configuration): string[] {
  const isOpen = clients.length === 0 && owner.claim === undefined && !isLoopback(hostnameOf(host));
  const claims =
    owner.claim !== undefined && owner.issuer === undefined && owner.audience === undefined
      ? [
          'owner.claim: every token that is signed with the keys of owner.jwks_url is taken, also those for other services; set owner.issuer and owner.audience.',
        ]
      : [];
  const names =
    isOpen && owner.header !== undefined
      ? [
          `owner.header: everyone who reaches ${host} can name an owner, and have the runs of that one; have only the front reach it, or give the front a token under clients.`,
        ]
      : [];
  const spends = Object.entries(upstreams).flatMap(([name, upstream]) => {
    if (isOpen && isKeyed(upstream))
      return `listen.host: everyone who reaches ${host} can spend ${keyPathOf(name, upstream)}; name the clients that may under clients, or listen on 127.0.0.1.`;
    if (clients.length > 0 && !isKeyed(upstream))
      return `upstreams.${name}: has no api_key, so requests for it need no token of a client; where the server asks for no key, configure any.`;
    return [];
  });
  return [...claims, ...names, ...spends];
}
