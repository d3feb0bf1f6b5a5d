import type { Configuration } from '../config/configuration.ts';

/** As much of a key as may be quoted in one piece: providers like to repeat how a refused one begins. */
const PIECE_CHARACTERS = 8;
const HIDDEN = '[redacted]';
/** What stands before the host of a URL. */
const USER_INFORMATION = /^[\w+]+:\/\/(.*)@/s;

interface Secrets {
  /** Sent to providers, which may quote parts of them. */
  readonly keys: readonly string[];
  /** Never sent to a model. */
  readonly others: readonly string[];
}

/** Every secret that is at hand. */
export function secretsOf(configuration: Configuration, client_key: string | undefined): Secrets {
  const { secret, upstreams, checkpoint } = configuration;
  const user = USER_INFORMATION.exec(checkpoint.store)?.[1];
  const keys = [client_key, ...Object.values(upstreams).map(({ api_key }) => api_key)];
  const others = [secret, ...checkpoint.sealing_keys, user?.slice(user.indexOf(':') + 1)];
  return { keys: keys.filter(isThere), others: others.filter(isThere) };
}

const isThere = (text: string | undefined): text is string => text !== undefined && text !== '';

/** A function that hides secrets, and pieces of keys, in what is printed. */
export function redactor({ keys, others }: Secrets): (text: string) => string {
  const hidden = new Set([...keys.flatMap(piecesOf), ...others]);
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

function piecesOf(key: string): string[] {
  if (key.length <= PIECE_CHARACTERS) return [key];
  return Array.from({ length: key.length - PIECE_CHARACTERS + 1 }, (_, start) =>
    key.slice(start, start + PIECE_CHARACTERS),
  );
}
