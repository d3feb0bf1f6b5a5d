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
