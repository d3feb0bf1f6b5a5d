import { type Configuration, SECRET_HEADERS } from './configuration.ts';

/** Replaces a secret in output. */
const HIDDEN = '[redacted]';

/** The part before the host in the URL of the store or a proxy may be a password. */
const USER_INFORMATION = /^([\w+]+:\/\/)(.*)@/s;

/** The query in a webhook's URL may be a token. */
const QUERY = /\?.*$/s;

/** Keys whose values, including those in a list or map, must never be printed. */
export const isSecretKey = (key: string | number): boolean => SECRET_KEYS.has(key);

/** A command may have a password among its arguments. */
const SECRET_KEYS: ReadonlySet<string | number> = new Set([
  'secret',
  'api_key',
  'api_key_command',
  'token',
  'sealing_keys',
  'headers',
]);

/** A copy for display, with secrets replaced by `[redacted]`. Absent secrets stay absent. */
export function redacted<Value>(value: Value): Value {
  return JSON.parse(
    JSON.stringify(value, (key, child) => {
      if (isSecretKey(key)) return isNothing(child) ? child : HIDDEN;
      if (key === 'store' || key === 'proxy') return child.replace(USER_INFORMATION, `$1${HIDDEN}@`);
      return key === 'url' ? child.replace(QUERY, `?${HIDDEN}`) : child;
    }),
  );
}

/** True for an absent value and for an empty list or map, which contain no secret. */
const isNothing = (value: unknown): boolean =>
  typeof value === 'object' ? Object.keys(value ?? {}).length === 0 : value === undefined;

/** Length of the key fragments to hide, because providers may quote the beginning of a rejected key. */
const PIECE_CHARACTERS = 8;

/** A function that hides every known secret, and fragments of provider keys, in text to be printed. */
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
