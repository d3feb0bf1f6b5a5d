import { expect, it } from 'vitest';
import { RouteTable } from '../../../src/proxy/upstream/route-table.ts';

const upstreams = {
  first: { base_url: 'http://first/v1', dialect: 'generic' },
  second: { base_url: 'http://second/v1', dialect: 'generic' },
} as const;
const settings = { non_streaming: 'recover', cache_affinity_ms: 300_000 } as const;

it('requests without a stream are recovered, unless the route of their model says otherwise', () => {
  expect(new RouteTable({ upstreams, routes: [] }).recoversDocuments('anything')).toBe(true);
  const targets = [{ upstream: 'first' }];
  const models = new RouteTable({
    upstreams,
    routes: [
      { model: 'gpt-4*', targets, ...settings, non_streaming: 'pass_through' },
      { model: 'gpt-*', targets, ...settings },
    ],
  });
  expect(['gpt-4o', 'gpt-3', 'llama'].map((model) => models.recoversDocuments(model))).toEqual([
    false,
    true,
    false,
  ]);
});

it('without routes the first upstream serves every model', () => {
  const models = new RouteTable({ upstreams, routes: [] });
  expect(models.target('anything')).toEqual({ name: 'first', upstream: upstreams.first });
});

it('the first route that matches decides', () => {
  const route = (model: string, upstream: string) => ({ model, targets: [{ upstream }], ...settings });
  const models = new RouteTable({ upstreams, routes: [route('gpt-4*', 'second'), route('gpt-*', 'first')] });
  expect(models.target('gpt-4o')?.name).toBe('second');
  expect(models.target('gpt-3')?.name).toBe('first');
  expect(models.target('llama')).toBeUndefined();
});

it('a route has its targets in order of preference', () => {
  const targets = [{ upstream: 'second', model: 'other', context_tokens: 8000 }, { upstream: 'first' }];
  const models = new RouteTable({ upstreams, routes: [{ model: 'gpt-*', targets, ...settings }] });
  expect(models.targets('gpt-4o')).toEqual([
    { name: 'second', upstream: upstreams.second, model: 'other', context_tokens: 8000 },
    { name: 'first', upstream: upstreams.first },
  ]);
  expect(models.targets('llama')).toEqual([]);
  expect(new RouteTable({ upstreams, routes: [] }).targets('llama')).toEqual([
    { name: 'first', upstream: upstreams.first },
  ]);
});

it('a route may have its conversations put in fewer words', () => {
  const compression = { upstream: 'second', model: 'scribe', keep_messages: 8, summary_tokens: 1024 };
  const targets = [{ upstream: 'first' }];
  const models = new RouteTable({
    upstreams,
    routes: [
      { model: 'gpt-4*', targets, ...settings, compression },
      { model: 'gpt-*', targets, ...settings },
    ],
  });
  expect(models.compression('gpt-4o')).toEqual({
    keep_messages: 8,
    summary_tokens: 1024,
    target: { name: 'second', upstream: upstreams.second, model: 'scribe' },
  });
  expect(models.compression('gpt-3')).toBeUndefined();
  expect(models.compression('llama')).toBeUndefined();
  expect(new RouteTable({ upstreams, routes: [] }).compression('gpt-4o')).toBeUndefined();
});
