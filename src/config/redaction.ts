import { isSecretKey, redactedStore } from './key-path.ts';

/** A copy that can be shown: secrets are replaced by `[redacted]`. */
export function redacted<Value>(value: Value): Value {
  return JSON.parse(
    JSON.stringify(value, (key, child) => {
      if (isSecretKey(key)) return '[redacted]';
      return key === 'store' ? redactedStore(child) : child;
    }),
  );
}
