import { describe, expect, it } from 'vitest';
import { AgreedTerms } from '../../../src/proxy/tasks/agreed-terms.ts';
import { OWNER, STRANGER } from '../../checkpoint/fixtures.ts';
import { lookupOf } from '../resume/lookup-setting.ts';

const TASK = { owner: OWNER, task: 'T23' };

function replicas() {
  const { context, store, time } = lookupOf();
  return { terms: new AgreedTerms(context), other: new AgreedTerms(context), store, time };
}

describe('the terms of a task', () => {
  it('are those that its first request names, at every replica', async () => {
    const { terms, other, time } = replicas();
    expect(await terms.of(TASK)).toEqual({});
    const agreed = { steps_total: 7, deadline_at_ms: time.wall() + 60_000 };
    expect(await terms.agreed(TASK, { steps_total: 7, deadline_ms: 60_000 })).toEqual(agreed);
    time.skip(1000);
    expect(await other.agreed(TASK, { steps_total: 9, deadline_ms: 60_000 })).toEqual(agreed);
    expect(await other.of(TASK)).toEqual(agreed);
    expect(await other.of({ ...TASK, owner: STRANGER })).toEqual({});
  });

  it('are those that its owner has put last, whatever requests name', async () => {
    const { terms, other } = replicas();
    await terms.agreed(TASK, { budget_tokens: 100 });
    await other.put(TASK, { description: 'invite them all' });
    expect(await terms.agreed(TASK, { budget_tokens: 100 })).toEqual({ description: 'invite them all' });
  });

  it('are agreed on anew once they are forgotten', async () => {
    const { terms, other } = replicas();
    await terms.agreed(TASK, { budget_tokens: 100 });
    await other.forget(TASK);
    expect(await terms.agreed(TASK, { budget_tokens: 7 })).toEqual({ budget_tokens: 7 });
  });

  it('are none where a strange hand has written what are no terms', async () => {
    const { terms, store } = replicas();
    for (const value of ['', '[]', 'null', '{']) {
      await store.notes.put(OWNER, { kind: 'task_terms', name: 'T23' }, value, 1000);
      expect(await terms.of(TASK)).toEqual({});
    }
  });
});
