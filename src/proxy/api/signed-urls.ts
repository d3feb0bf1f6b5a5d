import { createProofs, type Seal } from '../../checkpoint/seal.ts';
import { isRunId, type Owner, type RunId } from '../../checkpoint/store.ts';
import { apiError } from '../../lib/errors.ts';

/** What the URL of a run can allow; neither includes the other. */
export const RIGHTS = ['read', 'stop'] as const;
export type Right = (typeof RIGHTS)[number];

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Of a route that a signed URL can lead to: what the URL has to allow. Its path names a run as `:id`. */
    right?: Right;
  }
}

export const URL_TTL_S_DEFAULT = 600;
export const URL_TTL_S_MAX = 86_400;

/** The owner is in hexadecimal, and the proof one of {@link Seal}. */
const SIGNATURE = /^(\d{1,12})\.([\da-f]{64})\.([\w-]{8}\.[\w-]{22})$/;

/**
 * Signs URLs which allow one thing with one run for a while, without a credential, and checks them, at each replica that has
 * the secret.
 */
export class SignedUrls {
  readonly #proofs: Seal;

  constructor(secret: string) {
    this.#proofs = createProofs(secret);
  }

  /** `<expires_s>.<owner>.<proof>`. `expires_s`: in seconds since the Unix epoch. */
  sign(right: Right, run: RunId, owner: Owner, expires_s: number): string {
    return `${expires_s}.${owner}.${this.#ofRun(run).prove(granted(owner, expires_s), right)}`;
  }

  /** The owner of the run, if the URL allows that now. Throws `signature_invalid` and `url_expired`. */
  ownerOf(right: Right, run: string, signature: unknown, now_ms: number): Owner {
    const [, expires = '', owner = '', proof = ''] = SIGNATURE.exec(String(signature)) ?? [];
    const text = granted(owner, expires);
    if (!isRunId(run) || this.#ofRun(run).verify(text, proof, right) !== 'proven')
      throw apiError('signature_invalid');
    if (now_ms >= Number(expires) * 1000) throw apiError('url_expired');
    return owner as Owner;
  }

  /** Nothing that is stored is proven for a subject of this name. */
  #ofRun(run: RunId): Seal {
    return this.#proofs.for(`url of ${run}`);
  }
}

const granted = (owner: string, expires_s: number | string): string => `${owner} ${expires_s}`;
