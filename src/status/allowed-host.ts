import { isIPv4 } from 'node:net';

/** Names that nobody can have of a registrar: those without a dot, and the ends that are set aside for private use. */
const PRIVATE_NAME = /^[^.]+$|\.(localhost|local|internal|svc)$/;

const NAME_AND_PORT = /^([\w.-]+|\[[\da-f:.]+\])(:\d+)?$/i;

/**
 * Whether a request with this `Host` header may be told of runs. Under a public name, a page that somebody visits could
 * point its own name at this port and read along; addresses and private names cannot be pointed anywhere.
 */
export function isAllowedHost(header: string | undefined, allowed: readonly string[]): boolean {
  // Without one, it was no browser that asked.
  if (header === undefined) return true;
  if (!NAME_AND_PORT.test(header) || !URL.canParse(`http://${header}`)) return false;
  const { hostname } = new URL(`http://${header}`);
  const name = hostname.replace(/\.$/, '');
  return (
    isIPv4(name) ||
    name.startsWith('[') ||
    PRIVATE_NAME.test(name) ||
    allowed.some((each) => each.toLowerCase() === name)
  );
}
