import { ModelPattern } from '../../../config/model-pattern.ts';
import type { Dialect } from '../common/dialect.ts';
import type { Samples } from '../common/fingerprint.ts';
import { DIALECTS } from './registry.ts';

const ADDRESSES = Object.values(DIALECTS).flatMap((dialect) =>
  dialect.addresses.map((address) => ({
    dialect,
    hasPort: address.includes(':'),
    pattern: new ModelPattern(address),
  })),
);

const SIGNED = Object.values(DIALECTS).filter(({ sign }) => sign !== undefined);

/** Whose address this is; `undefined` where it says nothing. */
export function dialectAt(base_url: string): Dialect | undefined {
  const { hostname = '', host = '' } = URL.parse(base_url) ?? {};
  return ADDRESSES.find(({ hasPort, pattern }) => pattern.matches(hasPort ? host : hostname))?.dialect;
}

/** Who leaves such traces; `undefined` where they say nothing. */
export const dialectBehind = (traces: Samples): Dialect | undefined =>
  SIGNED.find(({ sign }) => sign?.isIn(traces));
