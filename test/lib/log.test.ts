import { PassThrough } from 'node:stream';
import { expect, it } from 'vitest';
import { createLogger } from '../../src/lib/log.ts';

function logged(write: (log: ReturnType<typeof createLogger>) => void): Record<string, unknown> {
  const lines = new PassThrough();
  write(createLogger('info', lines));
  return JSON.parse(String(lines.read()));
}

it('a line is JSON with its level by name, its time and its fields', () => {
  expect(logged((log) => log.child({ run: 'run_1' }).info({ attempt: 1 }, 'interrupted'))).toEqual({
    level: 'info',
    time: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
    run: 'run_1',
    attempt: 1,
    msg: 'interrupted',
  });
});

it('an error is logged with its code and its causes, and without what libraries attach to it', () => {
  const cause = Object.assign(new TypeError('inner'), { code: 'ECONNRESET', request: { headers: ['sk-1'] } });
  const line = logged((log) => log.error({ err: new Error('outer', { cause }) }, 'failed'));
  expect(line.err).toMatchObject({
    type: 'Error',
    message: 'outer',
    stack: expect.stringContaining('log.test.ts'),
    cause: { type: 'TypeError', message: 'inner', code: 'ECONNRESET' },
  });
  expect(JSON.stringify(line)).not.toContain('sk-1');
});

it('an error alone is one as well', () => {
  expect(logged((log) => log.error(new Error('outer'))).err).toMatchObject({ message: 'outer' });
});

it('fields that hold keys or prompts are never written, however deep', () => {
  const secret = 'sk-1';
  const line = logged((log) =>
    log.info(
      {
        api_key: secret,
        headers: { authorization: secret },
        a: { Authorization: secret, b: [{ 'x-api-key': secret, c: { cookie: secret } }] },
        run: { body: secret, request: { messages: [secret] }, target: { upstream: { api_key: secret } } },
      },
      'careless',
    ),
  );
  expect(line.msg).toBe('careless');
  expect(JSON.stringify(line)).not.toContain(secret);
});

it('objects with a life of their own are not opened, and circles end', () => {
  const circle: Record<string, unknown> = { value: 1 };
  circle.self = circle;
  const line = logged((log) =>
    log.info({ signal: AbortSignal.abort(), map: new Map(), circle, nothing: null }, 'odd'),
  );
  expect(line).toMatchObject({ signal: '[AbortSignal]', map: '[Map]', nothing: null });
  expect(JSON.stringify(line.circle)).toContain('[deep]');
});
