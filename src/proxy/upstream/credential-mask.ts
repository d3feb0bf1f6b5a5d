import { SECRET_HEADERS } from '../../config/configuration.ts';
import type { AttemptEnd } from '../../interrupts/classify.ts';
import type { ProviderError } from '../../interrupts/provider-error.ts';
import type { TransportRequest, TransportResponse } from './transport.ts';

type SentHeaders = TransportRequest['headers'];
type ResponseHeaders = TransportResponse['headers'];

/** Shorter values aren't secrets: servers without keys receive words such as `none`, which also occur in errors. */
const SECRET_CHARACTERS_MIN = 8;

/** Masks a request's credentials in its upstream's responses. Lengths never change. */
export class CredentialMask {
  readonly #secrets: readonly string[];

  constructor(sent: SentHeaders) {
    const values = SECRET_HEADERS.flatMap((name) => credentialsIn(name, sent[name]));
    const secrets = values.filter(({ length }) => length >= SECRET_CHARACTERS_MIN);
    this.#secrets = [...new Set(secrets.flatMap(writings))];
  }

  /** Also masks a credential that was truncated at the end of the text. */
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

  /** Masks in place. Returns whether there was anything to mask. */
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

  /** For bytes in pieces: holds back as many trailing bytes as a credential could begin in. */
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

/** The end of an attempt, made safe for clients, logs and traces. */
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

/** The part after the scheme (`Bearer`), if the header has one. */
function credentialsIn(name: string, header: string | readonly string[] | undefined): readonly string[] {
  if (header === undefined) return [];
  const values = [header].flat().map((value) => value.trim());
  return name.endsWith('authorization') ? values.map((value) => value.replace(/^\S+\s+/, '')) : values;
}

/** The secret itself, and its forms in JSON. */
const writings = (secret: string): readonly string[] => [
  secret,
  JSON.stringify(secret).slice(1, -1),
  secret.replaceAll('/', '\\/'),
];

const stars = ({ length }: string): string => '*'.repeat(length);
