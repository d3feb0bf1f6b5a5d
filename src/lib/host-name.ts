import { isIPv4, isIPv6 } from 'node:net';

/** Names that cannot be registered: those without a dot, and the suffixes that are reserved for private use. */
const PRIVATE_NAME = /^[^.]+$|\.(localhost|local|internal|svc)$/;

const NAME_AND_PORT = /^([\w.-]+|\[[\da-f:.]+\])(:\d+)?$/i;

/**
 * Whether a `Host` header names this port by an address, by a private name, or by one of `names`. A malicious page in a
 * browser can point its own public name at this port and read along; addresses and private names cannot be pointed anywhere.
 */
export function isTrustedHost(header: string | undefined, names: readonly string[]): boolean {
  // Browsers always send one.
  if (header === undefined) return true;
  if (!NAME_AND_PORT.test(header) || !URL.canParse(`http://${header}`)) return false;
  const { hostname } = new URL(`http://${header}`);
  const name = hostname.replace(/\.$/, '');
  return (
    isIPv4(name) ||
    name.startsWith('[') ||
    PRIVATE_NAME.test(name) ||
    names.some((each) => each.toLowerCase() === name)
  );
}

/** An address to listen on as URLs write it: `[::1]`, `localhost`. */
export function hostnameOf(address: string): string {
  const url = `http://${isIPv6(address) ? `[${address}]` : address}`;
  return URL.canParse(url) ? new URL(url).hostname : address;
}

const LOOPBACK = /^(localhost|127(\.\d+){3}|\[::1\])$/;

/** Whether only this machine can ask there. `hostname`: as URLs write it. */
export const isLoopback = (hostname: string): boolean => LOOPBACK.test(hostname);
