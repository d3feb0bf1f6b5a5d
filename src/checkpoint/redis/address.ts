import { StoreConfigurationError } from '../store.ts';

const REDIS_PORT = 6379;
const SENTINEL_PORT = 26379;
const PORT_MAX = 65535;

export interface RedisEndpoint {
  readonly host: string;
  readonly port: number;
}

interface RedisAccess {
  /** Without user and password, for messages and the log. */
  readonly name: string;
  readonly tls: boolean;
  readonly username?: string;
  readonly password?: string;
}

/** Location of and credentials for a Redis. */
export type RedisAddress =
  | (RedisAccess & { readonly kind: 'server'; readonly endpoint: RedisEndpoint; readonly db: number })
  | (RedisAccess & {
      readonly kind: 'sentinel';
      readonly sentinels: readonly RedisEndpoint[];
      readonly master: string;
      readonly db: number;
    })
  | (RedisAccess & { readonly kind: 'cluster'; readonly nodes: readonly RedisEndpoint[] });

const SCHEME = /^redis(?<tls>s?)(?:\+(?<kind>sentinel|cluster))?:\/\/(?<rest>.*)$/s;
/** A password may contain unescaped special characters: the last `@` ends it. */
const REST = /^(?:(?<user>.*)@)?(?<hosts>[^/]*)(?:\/(?<path>.*))?$/s;
const HOST = /^(?:\[(?<ipv6>[0-9a-fA-F:.]+)\]|(?<name>[^\s:@?#[\]]+))(?::(?<port>\d+))?$/;
const DATABASE = /^\d{1,5}$/;

/** Whether the URL has a Redis scheme, well-formed or not. */
export const isRedisUrl = (url: string): boolean => SCHEME.test(url);

/**
 * Parses `redis://`, `redis+sentinel://` and `redis+cluster://` URLs and their `rediss` variants. Throws a {@link
 * StoreConfigurationError} that doesn't contain the password.
 */
export function parseRedisUrl(url: string): RedisAddress {
  const { tls, kind = 'server', rest = '' } = SCHEME.exec(url)?.groups ?? {};
  const { user, hosts = '', path = '' } = REST.exec(rest)?.groups ?? {};
  const scheme = `redis${tls}${kind === 'server' ? '' : `+${kind}`}`;
  const access = {
    name: `${scheme}://${hosts}${path === '' ? '' : `/${path}`}`,
    tls: tls === 's',
    ...(user !== undefined && credentials(user)),
  };
  const endpoints = hosts
    .split(',')
    .map((host) => endpoint(host, kind === 'sentinel' ? SENTINEL_PORT : REDIS_PORT));
  const [first] = endpoints;
  switch (kind) {
    case 'cluster':
      if (path !== '')
        throw refusal('a cluster has no databases to choose from', 'remove what follows the hosts');
      return { ...access, kind, nodes: endpoints };
    case 'sentinel': {
      const [master = '', db = '', ...more] = path.split('/');
      if (master === '' || more.length > 0)
        throw refusal('the name of the master is missing', `write ${scheme}://${hosts}/<name of the master>`);
      return { ...access, kind, sentinels: endpoints, master: decoded(master), db: database(db) };
    }
    default:
      if (!first || endpoints.length > 1)
        throw refusal(
          'several hosts are a cluster or sentinels',
          'write redis+cluster://… or redis+sentinel://…/<name of the master>',
        );
      return { ...access, kind: 'server', endpoint: first, db: database(path) };
  }
}

/** Error for an invalid `checkpoint.store`, with the problem and its remedy. */
export const refusal = (problem: string, remedy: string): StoreConfigurationError =>
  new StoreConfigurationError(`checkpoint.store: ${problem}; ${remedy}`);

function credentials(user: string): Pick<RedisAccess, 'username' | 'password'> {
  const colon = user.indexOf(':');
  if (colon < 0) throw refusal('there is a user without a password', 'write redis://user:password@host');
  const username = decoded(user.slice(0, colon));
  const password = decoded(user.slice(colon + 1));
  return username === '' ? { password } : { username, password };
}

function endpoint(text: string, port_default: number): RedisEndpoint {
  const { ipv6, name, port } = HOST.exec(text)?.groups ?? {};
  const host = ipv6 ?? name;
  if (host === undefined) throw refusal(`${JSON.stringify(text)} is not a host`, 'write redis://host:port');
  const number = port === undefined ? port_default : Number(port);
  if (number < 1 || number > PORT_MAX)
    throw refusal(`${number} is not a port`, `use one from 1 to ${PORT_MAX}`);
  return { host, port: number };
}

function database(text: string): number {
  if (text === '') return 0;
  if (!DATABASE.test(text))
    throw refusal(`${JSON.stringify(text)} is not the number of a database`, 'write redis://host:port/0');
  return Number(text);
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw refusal('a % in the URL is not followed by two hex digits', 'write a plain % as %25');
  }
}
