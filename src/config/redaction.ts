import { type Configuration, SECRET_HEADERS } from './configuration.ts';

/** What stands for a secret where it may not be printed. */
const HIDDEN = '[redacted]';

/** What stands before the host of a URL: of the store, or of a proxy, it may be a password. */
const USER_INFORMATION = /^([\w+]+:\/\/)(.*)@/s;

/** Of the endpoint of a webhook, it may be a token. */
const QUERY = /\?.*$/s;

/** Keys whose values, or those in their list or map, must never be printed. */
export const isSecretKey = (key: string | number): boolean => SECRET_KEYS.has(key);

/** A command may have a password among its operands. */
const SECRET_KEYS: ReadonlySet<string | number> = new Set([
  'secret',
  'api_key',
  'api_key_command',
  'token',
  'sealing_keys',
  'headers',
]);

/** A copy that can be shown: secrets are replaced by `[redacted]`, where there are any. */
export function redacted<Value>(value: Value): Value {
  return JSON.parse(
    JSON.stringify(value, (key, child) => {
      if (isSecretKey(key)) return isNothing(child) ? child : HIDDEN;
      if (key === 'store' || key === 'proxy') return child.replace(USER_INFORMATION, `$1${HIDDEN}@`);
      return key === 'url' ? child.replace(QUERY, `?${HIDDEN}`) : child;
    }),
  );
}

/** A list or a map of secrets has none. */
const isNothing = (value: unknown): boolean =>
  typeof value === 'object' ? Object.keys(value ?? {}).length === 0 : value === undefined;

/** As much of a key as may be quoted in one piece: providers like to repeat how a refused one begins. */
const PIECE_CHARACTERS = 8;

/** A function that hides every secret that is at hand, and pieces of the keys that providers may quote, in what is printed. */
export function redactor(
  { secret, upstreams, clients, checkpoint, webhooks }: Configuration,
  client_key: string | undefined,
): (text: string) => string {
  const ofUpstreams = Object.values(upstreams).flatMap(({ api_key, headers = {} }) => [
    api_key,
    ...Object.entries(headers).flatMap(([name, value]) =>
      SECRET_HEADERS.includes(name.toLowerCase()) ? [value] : [],
    ),
  ]);
  const keys = [client_key, ...ofUpstreams];
  const tokens = clients.map(({ token }) => token);
  const users = [checkpoint.store, ...Object.values(upstreams).map(({ proxy = '' }) => proxy)].map(userOf);
  const passwords = users.map((user) => user?.slice(user.indexOf(':') + 1));
  const signing = webhooks.map((webhook) => webhook.secret);
  const others = [secret, ...tokens, ...signing, ...checkpoint.sealing_keys, ...passwords];
  const hidden = new Set([...keys.filter(isThere).flatMap(piecesOf), ...others.filter(isThere)]);
  return (text) => {
    const isHidden = new Uint8Array(text.length);
    for (const piece of hidden) {
      for (let place = text.indexOf(piece); place !== -1; place = text.indexOf(piece, place + 1))
        isHidden.fill(1, place, place + piece.length);
    }
    let shown = '';
    for (let place = 0; place < text.length; place++) {
      if (!isHidden[place]) shown += text[place];
      else if (place === 0 || !isHidden[place - 1]) shown += HIDDEN;
    }
    return shown;
  };
}

const userOf = (url: string): string | undefined => USER_INFORMATION.exec(url)?.[2];

const isThere = (text: string | undefined): text is string => text !== undefined && text !== '';

function piecesOf(key: string): string[] {
  if (key.length <= PIECE_CHARACTERS) return [key];
  return Array.from({ length: key.length - PIECE_CHARACTERS + 1 }, (_, start) =>
    key.slice(start, start + PIECE_CHARACTERS),
  );
}
