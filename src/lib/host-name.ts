import { isIPv4, isIPv6 } from 'node:net';

/** Names that can't be registered publicly: those without a dot, and suffixes reserved for private use. */
const PRIVATE_NAME = /^[^.]+$|\.(localhost|local|internal|svc)$/;

const NAME_AND_PORT = /^([\w.-]+|\[[\da-f:.]+\])(:\d+)?$/i;

/**
 * Whether a `Host` header names this port by an address, a private name or one of `names`. A malicious web page can
 * point its own public name at this port (DNS rebinding), but not an address or a private name.
 */
export function isTrustedHost(header: string | undefined, names: readonly string[]): boolean {
  // Browsers always send one.
  if (header === undefined) return true;
  const url = NAME_AND_PORT.test(header) ? URL.parse(`http://${header}`) : null;
  if (!url) return false;
  const name = url.hostname.replace(/\.$/, '');
  return (
    isIPv4(name) ||
    name.startsWith('[') ||
    PRIVATE_NAME.test(name) ||
    names.some((each) => each.toLowerCase() === name)
  );
}

/** A listening address in URL notation: `[::1]`, `localhost`. */
export function hostnameOf(address: string): string {
  return URL.parse(`http://${isIPv6(address) ? `[${address}]` : address}`)?.hostname ?? address;
}

const LOOPBACK = /^(localhost|127(\.\d+){3}|\[::1\])$/;

/** Whether only this machine can reach the address. `hostname`: in URL notation. */
export const isLoopback = (hostname: string): boolean => LOOPBACK.test(hostname);
