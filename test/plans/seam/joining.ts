import type { SeamKind, SeamRejection } from '../../../src/plans/seam/joint.ts';
import { type Mode, type PrefillManner, prefixOf } from '../../../src/plans/seam/mode.ts';
import { Seam, type SeamOptions } from '../../../src/plans/seam/seam.ts';

export interface Joined {
  /** The client's final text. */
  readonly text: string;
  readonly emitted: string;
  readonly rejected: SeamRejection | undefined;
  readonly kind: SeamKind;
}

/** `keepsSpace` (except for a nudge), `lastResort` and `strict` default to false, and a manner counts as proven. */
export interface Asking {
  readonly mode: Mode;
  readonly manner?: PrefillManner | undefined;
  readonly isProven?: boolean;
  readonly keepsSpace?: boolean;
  readonly lastResort?: boolean;
  readonly strict?: boolean;
}

export function seamOptions(delivered: string, asking: Asking): SeamOptions {
  const { mode, manner, isProven = true, lastResort = false, strict = false } = asking;
  const { keepsSpace = mode === 'nudge' } = asking;
  return { mode, delivered, prefix: prefixOf(delivered, keepsSpace), manner, isProven, lastResort, strict };
}

/** Splits `text` into pieces of these sizes, cyclically. */
export function pieces(text: string, sizes: readonly number[]): string[] {
  const all: string[] = [];
  for (let start = 0, index = 0; start < text.length; index++) {
    const size = sizes[index % sizes.length] ?? 1;
    all.push(text.slice(start, start + size));
    start += size;
  }
  return all;
}

/** Joins as a splice does: stops reading a rejected attempt. */
export function join(
  options: SeamOptions,
  chunks: readonly string[],
  watch: (seam: Seam, pushed: string, emitted: string) => void = () => {},
): Joined {
  const seam = new Seam(options);
  let pushed = '';
  let emitted = '';
  for (const chunk of chunks) {
    const { emit, rejected } = seam.push(chunk);
    pushed += chunk;
    emitted += emit;
    if (rejected) return { text: options.delivered, emitted, rejected, kind: seam.kind };
    watch(seam, pushed, emitted);
  }
  const { emit, rejected } = seam.end();
  emitted += emit;
  return { text: options.delivered + emitted, emitted, rejected, kind: seam.kind };
}
