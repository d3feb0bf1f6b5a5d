import { describe, expect, it } from 'vitest';
import type { Configuration } from '../../../src/config/configuration.ts';
import { targetsOfRun } from '../../../src/proxy/run/targets/targets-of-run.ts';
import { HealthRegistry } from '../../../src/proxy/upstream/target-health.ts';

const LIMITS = { failures: 2, failure_percent: 100, window: 20, open_ms: 100, open_max_ms: 1000 };
const MODEL = 'the model of a client';
const target = (name: string, model?: string) => ({
  name,
  upstream: { base_url: `http://${name}/v1`, api_key: `key of ${name}` },
  ...(model !== undefined && { model }),
});

describe('the health of a target', () => {
  it('is that of an upstream and a model, whichever route it is part of', () => {
    const healths = new HealthRegistry({ breaker: LIMITS, routes: [] });
    const one = healths.of(target('one'), MODEL);
    expect(healths.of(target('one'), MODEL)).toBe(one);
    expect(healths.of(target('one', 'model'), MODEL)).not.toBe(one);
    expect(healths.of(target('two'), MODEL)).not.toBe(one);
  });

  it('is not that of another model behind the same upstream', () => {
    const healths = new HealthRegistry({
      breaker: LIMITS,
      routes: [
        { model: '*', targets: [{ upstream: 'one' }, { upstream: 'two' }] },
      ] as unknown as Configuration['routes'],
    });
    for (let run = 0; run < 2; run++) healths.of(target('one'), 'bad').ask(0).failed(0);
    expect(healths.of(target('one'), 'bad').isDoubted(1)).toBe(true);
    expect(healths.of(target('one'), 'good').isDoubted(1)).toBe(false);
    expect(healths.states(1)).toEqual([
      { upstream: 'one', model: '', state: 'open' },
      { upstream: 'two', model: '', state: 'closed' },
    ]);
  });

  it('is forgotten of the model that was asked for longest ago, where clients name too many', () => {
    const healths = new HealthRegistry({ breaker: LIMITS, routes: [] });
    const first = healths.of(target('one'), 'model 0');
    const second = healths.of(target('one'), 'model 1');
    for (let model = 2; model < 256; model++) healths.of(target('one'), `model ${model}`);
    expect(healths.of(target('one'), 'model 0')).toBe(first);
    healths.of(target('one'), 'model 256');
    expect(healths.of(target('one'), 'model 0')).toBe(first);
    expect(healths.of(target('one'), 'model 1')).not.toBe(second);
  });

  it('is shared by all runs', () => {
    const healths = new HealthRegistry({ breaker: LIMITS, routes: [] });
    for (let run = 0; run < 2; run++) healths.of(target('one'), MODEL).ask(0).failed(0);
    const health = healths.of(target('one'), MODEL);
    expect(health.isDoubted(99)).toBe(true);
    expect(health.isDoubted(100)).toBe(false);
    const probe = health.ask(100);
    expect(health.isDoubted(100)).toBe(true);
    expect(probe.answered(110)).toBe(true);
    expect(probe.answered(120)).toBe(false);
    expect(health.isDoubted(120)).toBe(false);
  });

  it('is that of all that have another beside them, from the beginning on', () => {
    const healths = new HealthRegistry({
      breaker: LIMITS,
      routes: [
        { model: 'a', targets: [{ upstream: 'one' }, { upstream: 'one', model: 'large' }] },
        { model: 'b', targets: [{ upstream: 'two' }, { upstream: 'one', model: 'large' }] },
        { model: 'c', targets: [{ upstream: 'alone' }] },
      ] as unknown as Configuration['routes'],
    });
    for (let run = 0; run < 2; run++) healths.of(target('one', 'large'), MODEL).ask(0).failed(0);
    const statesAt = (now_ms: number) =>
      healths.states(now_ms).map(({ upstream, model, state }) => `${upstream}/${model}: ${state}`);
    expect(statesAt(99)).toEqual(['one/: closed', 'one/large: open', 'two/: closed']);
    expect(statesAt(100)).toEqual(['one/: closed', 'one/large: half_open', 'two/: closed']);
  });

  it('stays that of targets that are the same under another configuration, unless the breaker is another one', () => {
    const routes = [
      { model: '*', targets: [{ upstream: 'one' }, { upstream: 'two' }, { upstream: 'gone' }] },
    ] as unknown as Configuration['routes'];
    const registry = new HealthRegistry({ breaker: LIMITS, routes });
    for (const name of ['one', 'two', 'gone'])
      for (let run = 0; run < 2; run++) registry.of(target(name), MODEL).ask(0).failed(0);
    const after = [
      { model: '*', targets: [{ upstream: 'one' }, { upstream: 'two' }] },
    ] as unknown as Configuration['routes'];
    const known = { registry, isSame: (name: string) => name === 'one' };
    const statesIn = (healths: HealthRegistry) =>
      healths.states(0).map(({ upstream, state }) => `${upstream}: ${state}`);
    const next = new HealthRegistry({ breaker: LIMITS, routes: after }, known);
    expect(statesIn(next)).toEqual(['one: open', 'two: closed']);
    expect(next.of(target('one'), MODEL)).toBe(registry.of(target('one'), MODEL));
    const other = { ...LIMITS, failures: LIMITS.failures + 1 };
    expect(statesIn(new HealthRegistry({ breaker: other, routes: after }, known))).toEqual([
      'one: closed',
      'two: closed',
    ]);
  });

  it('knows until when it is to be left alone, by the longest time it was told', () => {
    const health = new HealthRegistry({ breaker: LIMITS, routes: [] }).of(target('one'), MODEL);
    health.leaveAlone(500);
    health.leaveAlone(200);
    expect(health.ready_at_ms).toBe(500);
  });
});

describe('the targets of a run', () => {
  const healths = new HealthRegistry({ breaker: LIMITS, routes: [] });
  const headersFor = ({ api_key = '' }) => ({ authorization: api_key });

  it('have each its own credential', () => {
    const [one, two] = [target('one'), target('two', 'model')];
    expect(targetsOfRun(one, [one, two], headersFor, healths, MODEL)).toEqual({
      target: { ...one, headers: { authorization: 'key of one' } },
      targets: [
        { ...one, headers: { authorization: 'key of one' }, health: healths.of(one, MODEL) },
        { ...two, headers: { authorization: 'key of two' }, health: healths.of(two, MODEL) },
      ],
    });
  });

  it('come in another order where only a later one has the conversation in its prompt cache', () => {
    const all = [target('near'), target('far', 'model'), target('third')];
    const named = (since_ms: number, name = 'mine') =>
      targetsOfRun(all[0] ?? target('near'), all, headersFor, healths, MODEL, {
        name,
        since_ms,
      }).targets?.map((each) => each.name);
    healths.of(target('far', 'model'), MODEL).noteCached('mine', 1000);
    expect(named(1000)).toEqual(['far', 'near', 'third']);
    expect(named(1001)).toEqual(['near', 'far', 'third']);
    expect(named(1000, 'of another')).toEqual(['near', 'far', 'third']);
    healths.of(target('near'), MODEL).noteCached('mine', 1200);
    expect(named(1000)).toEqual(['near', 'far', 'third']);
  });

  it('remember 10,000 conversations each', () => {
    const health = healths.of(target('many'), MODEL);
    for (let number = 0; number <= 10_000; number++) health.noteCached(`number ${number}`, number);
    expect([0, 1, 10_000].map((number) => health.hasCached(`number ${number}`, 0))).toEqual([
      false,
      true,
      true,
    ]);
  });

  it('are none where there is but one', () => {
    const one = target('one');
    expect(targetsOfRun(one, [one], headersFor, healths, MODEL)).toEqual({
      target: { ...one, headers: { authorization: 'key of one' } },
    });
  });
});
