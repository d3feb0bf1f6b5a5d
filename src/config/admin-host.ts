import { isIPv6 } from 'node:net';
import type { Configuration } from './configuration.ts';

const LOOPBACK = '127.0.0.1';
/** Every interface, in the notation that a URL has for it, and the loopback address of the same kind. */
const LOOPBACKS: Readonly<Record<string, string>> = {
  '0.0.0.0': LOOPBACK,
  '[::]': '::1',
  '[::ffff:0:0]': LOOPBACK,
};

/** Where the admin port listens: it asks nobody who they are, so that it is not opened to the world without being told to. */
export function adminHost({ host, admin_host }: Configuration['listen']): string {
  if (admin_host !== undefined) return admin_host;
  const url = `http://${isIPv6(host) ? `[${host}]` : host}`;
  const name = URL.canParse(url) ? new URL(url).hostname : host;
  return LOOPBACKS[name] ?? host;
}
