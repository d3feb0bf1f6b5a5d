import { createProofs, type Seal } from '../../checkpoint/seal.ts';
import { isRunId, type Owner, type RunId } from '../../checkpoint/store.ts';
import { apiError } from '../../lib/errors.ts';

/** The rights that a run's URL can grant; neither includes the other. */
export const RIGHTS = ['read', 'stop'] as const;
export type Right = (typeof RIGHTS)[number];

declare module 'fastify' {
  interface FastifyContextConfig {
    /** For a route that accepts signed URLs: the right it requires. Its path must name a run as `:id`. */
    right?: Right;
  }
}

export const URL_TTL_S_DEFAULT = 600;
export const URL_TTL_S_MAX = 86_400;

/** The owner is hexadecimal; {@link Seal} creates the proof. */
const SIGNATURE = /^(\d{1,12})\.([\da-f]{64})\.([\w-]{8}\.[\w-]{22})$/;

/**
 * Signs and verifies URLs that grant one right to one run for a limited time, without a credential. Every replica with
 * the same secret accepts them.
 */
export class SignedUrls {
  readonly #proofs: Seal;

  constructor(secret: string) {
    this.#proofs = createProofs(secret);
  }

  /** Returns `<expires_s>.<owner>.<proof>`. `expires_s`: in seconds since the Unix epoch. */
  sign(right: Right, run: RunId, owner: Owner, expires_s: number): string {
    return `${expires_s}.${owner}.${this.#ofRun(run).prove(granted(owner, expires_s), right)}`;
  }

  /**
   * The owner of the run, if the URL is currently valid for this right. Throws `signature_invalid` and `url_expired`.
   */
  ownerOf(right: Right, run: string, signature: unknown, now_ms: number): Owner {
    const [, expires = '', owner = '', proof = ''] = SIGNATURE.exec(String(signature)) ?? [];
    const text = granted(owner, expires);
    if (!isRunId(run) || this.#ofRun(run).verify(text, proof, right) !== 'proven')
      throw apiError('signature_invalid');
    if (now_ms >= Number(expires) * 1000) throw apiError('url_expired');
    return owner as Owner;
  }

  /** A subject of its own, which no stored proof uses. */
  #ofRun(run: RunId): Seal {
    return this.#proofs.for(`url of ${run}`);
  }
}

const granted = (owner: string, expires_s: number | string): string => `${owner} ${expires_s}`;
