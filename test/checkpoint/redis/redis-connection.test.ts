import { inspect } from 'node:util';
import { afterAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { parseRedisUrl } from '../../../src/checkpoint/redis/address.ts';
import { RedisConnection } from '../../../src/checkpoint/redis/connection.ts';
import { needs } from '../../needs.ts';
import { redisBinary } from '../../redis/binaries.ts';
import { RedisServer } from '../../redis/redis-server.ts';

const binary = await redisBinary();

if ('missing' in binary) {
  test('the connection to Redis', needs(binary), () => {});
} else {
  const server = await RedisServer.start({ binary: binary.path });
  afterAll(() => server.stop());

  const connect = async (): Promise<RedisConnection> => {
    const connection = new RedisConnection(parseRedisUrl(server.url));
    onTestFinished(() => connection.close());
    await connection.start(async () => {});
    return connection;
  };

  describe('the connection to Redis', () => {
    test('is made again even when the client has given up', async () => {
      const connection = await connect();
      connection.client.disconnect();
      await expect(connection.ask((client) => client.ping())).rejects.toThrow('the connection was lost');
      await vi.waitFor(() => connection.ask((client) => client.ping()), { timeout: 10_000 });
    });

    test('fails without telling what was sent', async () => {
      const connection = await connect();
      await connection.ask((client) => client.set('some legible key', 'a legible value'));
      const error = await connection
        .ask((client) => client.sadd('some legible key', 'another legible value'))
        .then(
          () => expect.unreachable('it worked'),
          (reason: unknown) => reason,
        );
      expect(error).toMatchObject({ reason: expect.stringContaining('WRONGTYPE') });
      expect(inspect(error, { depth: 10, showHidden: true })).not.toMatch(/legible/);
    });

    test('sends what is asked for in one turn as one write', async () => {
      const connection = await connect();
      const socket = (connection.client as unknown as { stream: { write: (bytes: string) => boolean } })
        .stream;
      const write = vi.spyOn(socket, 'write');
      await Promise.all(
        Array.from({ length: 100 }, (_, i) => connection.ask((client) => client.set(`key ${i}`, i))),
      );
      expect(write).toHaveBeenCalledTimes(1);
    });

    test('belongs to Fastify, which ends it', async () => {
      const connection = await connect();
      const { client } = connection;
      const quit = vi.spyOn(client, 'quit');
      const ended = new Promise((resolve) => client.once('end', resolve));
      await connection.close();
      await ended;
      expect(quit).toHaveBeenCalledOnce();
      await expect(connection.ask((closed) => closed.ping())).rejects.toThrow();
    });

    test('can be closed when the server is gone', async () => {
      const gone = await RedisServer.start({ binary: binary.path });
      const connection = new RedisConnection(parseRedisUrl(gone.url));
      await connection.start(async () => {});
      await gone.stop();
      await connection.close();
      await expect(connection.ask((client) => client.ping())).rejects.toThrow('failed');
    });
  });
}
