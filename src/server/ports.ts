import type { AddressInfo } from 'node:net';
import type { FastifyInstance } from 'fastify';
import { adminHost, type Configuration } from '../config/configuration.ts';

interface Address {
  readonly host: string;
  readonly port: number;
}

class ListenError extends Error {
  override readonly name = 'ListenError';

  constructor(key: 'port' | 'admin_port', host: string, port: number, code: string | undefined) {
    super(
      `listen.${key}: cannot listen on ${host} port ${port} (${code}); ${REMEDIES[code ?? ''] ?? REMEDY}`,
    );
  }
}

const REMEDY = 'choose another with --host, --port and --admin-port.';
const REMEDIES: Readonly<Record<string, string>> = {
  EADDRINUSE:
    'it is in use: stop the other process, or choose another with --port or --admin-port (0 picks a free one).',
  EACCES: 'this user may not: choose a port above 1023.',
  EADDRNOTAVAIL: 'this machine has no such address: choose another with --host or --admin-host.',
};

/** Opens the API port with `listen` and resolves with its URL. Rejects with a {@link ListenError}. */
export const openApiPort = (
  { host, port }: Address,
  listen: (address: Address) => Promise<AddressInfo>,
): Promise<string> => open('port', { host, port }, listen);

/** Like {@link openApiPort}, for the admin port. */
export const openAdminPort = (admin: FastifyInstance, listen: Configuration['listen']): Promise<string> =>
  open('admin_port', { host: adminHost(listen), port: listen.admin_port }, async (address) => {
    await admin.listen(address);
    return admin.server.address() as AddressInfo;
  });

async function open(
  key: 'port' | 'admin_port',
  { host, port }: Address,
  listen: (address: Address) => Promise<AddressInfo>,
): Promise<string> {
  try {
    const { family, address, port: opened } = await listen({ host, port });
    return `http://${family === 'IPv6' ? `[${address}]` : address}:${opened}`;
  } catch (error) {
    throw new ListenError(key, host, port, (error as NodeJS.ErrnoException).code);
  }
}
