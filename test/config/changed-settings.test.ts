import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { changedSettings } from '../../src/config/changed-settings.ts';
import { completeConfiguration } from '../../src/config/load.ts';
import { RESTART_SETTINGS, untilRestart } from '../../src/config/restart-settings.ts';

const ONE = { base_url: 'https://one.example.com/v1' };
const TWO = { base_url: 'https://two.example.com/v1' };
const complete = (tree: object = {}) => completeConfiguration({ upstreams: { one: ONE }, ...tree });

describe('changedSettings', () => {
  it('names no setting where nothing differs', () => {
    expect(changedSettings(complete(), complete())).toEqual([]);
  });

  it('names single settings, whole lists, and what was added or removed, without a value', () => {
    const before = complete({ upstreams: { one: { ...ONE, api_key: 'sk-before' }, two: TWO } });
    const after = complete({
      upstreams: { one: { ...ONE, api_key: 'sk-after' }, three: TWO },
      routes: [{ model: '*', targets: [{ upstream: 'one' }] }],
      recovery: { backoff_ms: 1 },
    });
    expect(changedSettings(before, after)).toEqual([
      'upstreams.one.api_key',
      'upstreams.two',
      'upstreams.three',
      'routes',
      'recovery.backoff_ms',
    ]);
  });

  it('notices another first upstream, which serves what is on no route', () => {
    const before = complete({ upstreams: { one: ONE, two: TWO } });
    const after = complete({ upstreams: { two: TWO, one: ONE } });
    expect(changedSettings(before, after)).toEqual(['upstreams']);
  });
});

describe('untilRestart', () => {
  it('keeps what a process cannot change as it is, and applies the rest', () => {
    const running = complete({ secret: 'the first of the secrets', listen: { port: 1 } });
    const next = complete({
      listen: { port: 2, cors_origins: ['https://app.example.com'] },
      checkpoint: { store: 'memory', sealing_keys: ['k'.repeat(32)], durability: 'write_ahead' },
      tracing: { endpoint: 'http://collector:4318' },
    });
    const { configuration, pending } = untilRestart(running, next);
    expect(pending.toSorted()).toEqual([
      'checkpoint.sealing_keys',
      'checkpoint.store',
      'listen.port',
      'secret',
      'tracing',
    ]);
    expect(configuration).toEqual({
      ...running,
      listen: { ...running.listen, cors_origins: ['https://app.example.com'] },
      checkpoint: { ...running.checkpoint, durability: 'write_ahead' },
    });
  });

  it('returns to leaving out what the running configuration leaves out', () => {
    const next = complete({ secret: 'a secret that is new', listen: { admin_host: '0.0.0.0' } });
    const { configuration, pending } = untilRestart(complete(), next);
    expect(pending).toEqual(['listen.admin_host', 'secret']);
    expect(configuration).toEqual(complete());
  });

  it('has nothing pending where only other settings differ', () => {
    const next = complete({ recovery: { backoff_ms: 1 } });
    expect(untilRestart(complete(), next)).toEqual({ configuration: next, pending: [] });
  });

  it('names the settings that docs/reload.md says need a restart', () => {
    const page = readFileSync(new URL('../../docs/reload.md', import.meta.url), 'utf8');
    const [, table = ''] = /\n## What needs a restart\n[^|]*(\|[\s\S]*?)\n\n/.exec(page) ?? [];
    const named = [...table.matchAll(/^\|([^|]*)\|/gm)].flatMap(([, cell = '']) =>
      Array.from(cell.matchAll(/`([^`]+)`/g), ([, setting]) => setting),
    );
    expect(named.toSorted()).toEqual(RESTART_SETTINGS.map((path) => path.join('.')).toSorted());
  });

  it('names settings that exist', () => {
    const tree = complete({
      secret: 'a secret that is there',
      listen: { admin_host: '127.0.0.1' },
      checkpoint: { complete_ttl_s: 1, ended_task_ttl_s: 1 },
    });
    for (const path of RESTART_SETTINGS) {
      const value = path.reduce<unknown>((part, key) => (part as Record<string, unknown>)[key], tree);
      expect(value, path.join('.')).toBeDefined();
    }
  });
});
