import { expect, it } from 'vitest';
import { Models } from '../../src/proxy/models.ts';

const upstreams = {
  first: { base_url: 'http://first/v1', dialect: 'generic' },
  second: { base_url: 'http://second/v1', dialect: 'generic' },
} as const;

it('without routes the first upstream serves every model', () => {
  const models = new Models({ upstreams, routes: [] });
  expect(models.target('anything')).toEqual({ name: 'first', upstream: upstreams.first });
});

it('the first route that matches decides', () => {
  const route = (model: string, upstream: string) => ({ model, targets: [{ upstream }] });
  const models = new Models({ upstreams, routes: [route('gpt-4*', 'second'), route('gpt-*', 'first')] });
  expect(models.target('gpt-4o')?.name).toBe('second');
  expect(models.target('gpt-3')?.name).toBe('first');
  expect(models.target('llama')).toBeUndefined();
});

it('a route has its targets in order of preference', () => {
  const targets = [{ upstream: 'second', model: 'other', context_tokens: 8000 }, { upstream: 'first' }];
  const models = new Models({ upstreams, routes: [{ model: 'gpt-*', targets }] });
  expect(models.targets('gpt-4o')).toEqual([
    { name: 'second', upstream: upstreams.second, model: 'other', context_tokens: 8000 },
    { name: 'first', upstream: upstreams.first },
  ]);
  expect(models.targets('llama')).toEqual([]);
  expect(new Models({ upstreams, routes: [] }).targets('llama')).toEqual([
    { name: 'first', upstream: upstreams.first },
  ]);
});
