import { SECRET_HEADERS } from '../../config/configuration.ts';
import type { AttemptEnd } from '../../interrupts/classify.ts';
import type { ProviderError } from '../../interrupts/provider-error.ts';
import type { TransportRequest, TransportResponse } from './transport.ts';

type SentHeaders = TransportRequest['headers'];
type ResponseHeaders = TransportResponse['headers'];

/** Shorter ones are no secrets: servers that ask for no key are sent words such as `none`, which errors have, too. */
const SECRET_CHARACTERS_MIN = 8;

/** Hides the credentials that a request was sent with, where its upstream repeats them. Nothing changes its length. */
export class CredentialMask {
  readonly #secrets: readonly string[];

  constructor(sent: SentHeaders) {
    const values = SECRET_HEADERS.flatMap((name) => credentialsIn(name, sent[name]));
    const secrets = values.filter(({ length }) => length >= SECRET_CHARACTERS_MIN);
    this.#secrets = [...new Set(secrets.flatMap(writings))];
  }

  /** A text may have been cut in the middle of a credential. */
  text(text: string): string {
    let shown = text;
    for (const secret of this.#secrets) {
      shown = shown.replaceAll(secret, stars);
      for (let length = secret.length - 1; length >= SECRET_CHARACTERS_MIN; length--) {
        const start = secret.slice(0, length);
        if (shown.endsWith(start)) shown = shown.slice(0, -length) + stars(start);
      }
    }
    return shown;
  }

  /** In place. Returns whether there was anything to hide. */
  bytes(bytes: Buffer): boolean {
    let found = false;
    for (const secret of this.#secrets.map((text) => Buffer.from(text))) {
      for (let at = bytes.indexOf(secret); at !== -1; at = bytes.indexOf(secret, at + secret.length)) {
        bytes.fill('*', at, at + secret.length);
        found = true;
      }
    }
    return found;
  }

  headers(headers: ResponseHeaders): ResponseHeaders {
    const shown = (value: string | string[] | undefined) =>
      typeof value === 'string' ? this.text(value) : value?.map((each) => this.text(each));
    return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, shown(value)]));
  }

  /** For bytes that come in pieces: the last ones are kept back, as long as a credential could begin there. */
  stream(): { push(piece: Buffer): Buffer; end(): Buffer } {
    const kept_max = Math.max(0, ...this.#secrets.map((secret) => Buffer.byteLength(secret) - 1));
    let kept: Buffer = Buffer.alloc(0);
    return {
      push: (piece) => {
        const bytes = Buffer.concat([kept, piece]);
        this.bytes(bytes);
        const end = Math.max(0, bytes.length - kept_max);
        kept = bytes.subarray(end);
        return bytes.subarray(0, end);
      },
      end: () => kept,
    };
  }
}

/** How an attempt ended, as it may be reported: to its client, to the log, to a trace. */
export function maskedEnd(end: AttemptEnd, sent: SentHeaders): AttemptEnd {
  const masked = (error: ProviderError): ProviderError => ({
    ...error,
    message: new CredentialMask(sent).text(error.message),
  });
  if (end.kind === 'eof') return end.residue ? { ...end, residue: masked(end.residue) } : end;
  if (end.kind === 'error_event') return { ...end, error: masked(end.error) };
  if (end.kind === 'refused') return end.error ? { ...end, error: masked(end.error) } : end;
  return end;
}

/** What comes after the scheme (`Bearer`), where the header has one. */
function credentialsIn(name: string, header: string | readonly string[] | undefined): readonly string[] {
  if (header === undefined) return [];
  const values = [header].flat().map((value) => value.trim());
  return name.endsWith('authorization') ? values.map((value) => value.replace(/^\S+\s+/, '')) : values;
}

/** As it is, and as it may be written in JSON. */
const writings = (secret: string): readonly string[] => [
  secret,
  JSON.stringify(secret).slice(1, -1),
  secret.replaceAll('/', '\\/'),
];

const stars = ({ length }: string): string => '*'.repeat(length);
