/** A copy that can be shown: secrets are replaced by `[redacted]`. */
export function redacted<Value>(value: Value): Value {
  return JSON.parse(
    JSON.stringify(value, (key, child) => {
      if (isSecretKey(key)) return '[redacted]';
      return key === 'store' ? redactedStore(child) : child;
    }),
  );
}

/** Keys whose values, or those in their list or map, must never be printed. */
export const isSecretKey = (key: string | number): boolean =>
  key === 'secret' || key === 'api_key' || key === 'sealing_keys' || key === 'headers';

/** What stands before the host of a URL: of the store it may be a password. */
const USER_INFORMATION = /^([\w+]+:\/\/).*@/;

/** The store as it may be printed. */
const redactedStore = (url: string): string => url.replace(USER_INFORMATION, '$1[redacted]@');
