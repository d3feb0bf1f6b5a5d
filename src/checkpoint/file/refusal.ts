/**
 * An error of the writer thread. `stale`, `foreign`, `finished` and `taken` are answers; any other code is that of a
 * file-system error. Plain data, because messages between threads lose the class of an error.
 */
export interface Refusal {
  readonly code: string;
  readonly message: string;
}

/** A refusal as an error on the receiving thread. */
export class FileStoreError extends Error implements Refusal {
  override readonly name = 'FileStoreError';
  readonly code: string;

  constructor({ code, message }: Refusal) {
    super(message);
    this.code = code;
  }
}

export const refused = (code: string, message: string): FileStoreError =>
  new FileStoreError({ code, message });

export const toRefusal = (error: unknown): Refusal =>
  error instanceof Error
    ? { code: 'code' in error ? String(error.code) : error.name, message: error.message }
    : { code: 'unknown', message: String(error) };
