import { describe, expect, test, vi } from 'vitest';
import { telling } from '../provider/accent.ts';
import type { KeepsAnswers } from '../provider/kept-answers.ts';
import type { RecordedRequest } from '../provider/recorded-request.ts';
import type { Part, Plan } from '../provider/script.ts';
import { type Answer, KeptDeployment, seen } from './kept-deployment.ts';

const TEXT = {
  text: 'Le varech tient bon — 海带 🌊 — through the surge, and it does not let go of the rock.',
};
const CALLS: readonly Part[] = [
  { reasoning: 'They ask about the tides.' },
  TEXT,
  { tool: { id: 'call_brest', name: 'tides', arguments: '{"port":"Brest","days":[1,2,3]}' } },
  { tool: { id: 'call_lorient', name: 'tides', arguments: '{"port":"Lorient"}' } },
];

const AS = ['llamacpp', 'cloudflare'] as const;
const planOf = (as: KeepsAnswers['as'], parts = CALLS, keeps: Partial<KeepsAnswers> = {}): Plan => ({
  parts,
  keeps: { as, ...keeps },
});
const RESUMES = {
  llamacpp: /^GET \/v1\/stream\?conv_id=[0-9a-f]{32}&from=\d+$/,
  cloudflare: /^GET \/v1\/run\/[0-9a-f]{64}\/resume\?from=\d+$/,
};
const STOP = /^DELETE \/v1\/stream\?conv_id=[0-9a-f]{32}$/;

const ofMethod = (requests: readonly RecordedRequest[], wanted: string) =>
  requests.flatMap(({ method, path, search }) => (method === wanted ? `${method} ${path}${search}` : []));

const placesIn = (asked: readonly string[]) =>
  asked.flatMap((each) => (each.startsWith('GET') ? Number(/\d+$/.exec(each)?.[0]) : []));

describe.each(AS)('an answer that is kept as %s does it', (as) => {
  const plan = planOf(as);
  const resume = expect.stringMatching(RESUMES[as]) as string;

  test('is come back to wherever the connection was lost', async () => {
    const deployment = await KeptDeployment.begin({ dialect: as });
    const uncut = await deployment.ask(plan);
    expect(uncut.asked).toEqual(['POST']);
    const size = deployment.provider.generations[0]?.size ?? 0;
    for (let byte = 150; byte < size - 700; byte += 331) {
      const cut = await deployment.ask(plan, [{ kind: 'reset', at: { byte } }]);
      expect(seen(cut)).toEqual(seen(uncut));
      expect(cut.asked).toEqual(['POST', resume]);
    }
  });

  test('is come back to again and again', async () => {
    const deployment = await KeptDeployment.begin({ dialect: as });
    const uncut = await deployment.ask(plan);
    const cut = await deployment.ask(plan, [
      { kind: 'reset', at: { byte: 3_333 } },
      { kind: 'fin_in_chunk', at: { byte: 2_222 } },
      { kind: 'status', status: 503 },
    ]);
    expect(seen(cut)).toEqual(seen(uncut));
    expect(cut.asked).toEqual(['POST', resume, resume, resume]);
    // Half an event isn't skipped, and a whole one isn't sent again.
    const [first = 0, second = 0, third] = placesIn(cut.asked);
    expect(first).toBeLessThan(second);
    expect(third).toBe(second);
  });

  describe('whose end was lost after its finish reason', () => {
    const reset = { kind: 'reset', at: { after_finish: true } } as const;

    test('is come back to for the usage', async () => {
      const deployment = await KeptDeployment.begin({ dialect: as });
      const uncut = await deployment.ask(plan);
      const cut = await deployment.ask(plan, [reset]);
      expect(seen(cut)).toEqual(seen(uncut));
      expect(cut.asked).toEqual(['POST', resume]);
    });

    test('is not, if it was not asked for', async () => {
      const deployment = await KeptDeployment.begin({ dialect: as });
      const cut = await deployment.ask(plan, [reset], { more: { stream_options: null } });
      expect([cut.stream.finish, cut.stream.done, cut.stream.violations]).toEqual(['tool_calls', true, []]);
      expect(ofMethod(cut.requests, 'GET')).toEqual([]);
    });

    test('is whole without it, where it is gone, or lost again', async () => {
      const deployment = await KeptDeployment.begin({ dialect: as });
      const gone = await deployment.ask(planOf(as, CALLS, { ttl_ms: 0 }), [reset]);
      const lost = await deployment.ask(plan, [reset, { kind: 'reset', at: { byte: 9 } }]);
      for (const { stream, requests } of [gone, lost]) {
        expect([stream.text, stream.toolCalls.length]).toEqual([TEXT.text, 2]);
        expect([stream.finish, stream.done, stream.violations]).toEqual(['tool_calls', true, []]);
        expect(stream.usage).toBeDefined();
        expect(ofMethod(requests, 'GET')).toEqual([resume]);
        expect(ofMethod(requests, 'POST')).toHaveLength(1);
      }
    });
  });

  test('is come back to where the body ends with an event but without its blank line', async () => {
    const deployment = await KeptDeployment.begin({ dialect: as });
    const uncut = await deployment.ask(plan);
    const [generation] = deployment.provider.generations;
    const end = generation?.placeOf(12) ?? 0;
    for (const byte of [end - 9, end - 3, end - 2, end - 1]) {
      const cut = await deployment.ask(plan, [{ kind: 'clean_eof', at: { byte } }]);
      expect(seen(cut)).toEqual(seen(uncut));
      expect(cut.asked).toEqual(['POST', resume]);
    }
  });

  test('is not come back to once the provider has forgotten it, and is finished all the same', async () => {
    const deployment = await KeptDeployment.begin({ dialect: as });
    const forgetful = planOf(as, [TEXT], { ttl_ms: 0 });
    const reset = { kind: 'reset', at: { event: 20 } } as const;
    const cut = await deployment.ask(forgetful, [reset, null, { kind: 'reset', at: { event: 4 } }]);
    expect(cut.stream.text).toBe(TEXT.text);
    expect(cut.stream.violations).toEqual([]);
    // A provider that has lost the answer isn't asked for it again.
    expect(ofMethod(cut.requests, 'GET')).toEqual([resume]);
    expect(cut.asked.filter((each) => each === 'POST').length).toBeGreaterThan(1);
  });

  test('does not take attempts from other ways of asking when it cannot be come back to', async () => {
    const deployment = await KeptDeployment.begin(
      { dialect: as },
      { recovery: { max_attempts: 2, backoff_ms: 1 } },
    );
    const cut = await deployment.ask(planOf(as, [TEXT], { ttl_ms: 0 }), [
      { kind: 'reset', at: { event: 20 } },
    ]);
    expect(cut.stream.text).toBe(TEXT.text);
  });

  test('gives way to other ways of asking where every connection to it is lost', async () => {
    const deployment = await KeptDeployment.begin({ dialect: as });
    const lost = { kind: 'reset', at: { byte: 9 } } as const;
    const cut = await deployment.ask(planOf(as, [TEXT]), [{ kind: 'reset', at: { event: 20 } }, lost, lost]);
    expect(cut.stream.text).toBe(TEXT.text);
    expect(ofMethod(cut.requests, 'GET')).toEqual([resume, resume]);
  });

  test('gives way to other ways of asking where it has come to a standstill', async () => {
    const deployment = await KeptDeployment.begin({ dialect: as }, { clocks: { idle_ms: 300 } });
    const silence = { kind: 'silence', at: { event: 20 } } as const;
    const cut = await deployment.ask(planOf(as, [TEXT]), [silence, { ...silence, at: { event: 0 } }]);
    expect(cut.stream.text).toBe(TEXT.text);
    expect(ofMethod(cut.requests, 'GET')).toEqual([resume]);
  });

  test('is not come back to when its provider has failed at it', async () => {
    const deployment = await KeptDeployment.begin({ dialect: as });
    const cut = await deployment.ask(planOf(as, [TEXT]), [{ kind: 'error_openai', at: { event: 20 } }]);
    expect(cut.stream.text).toBe(TEXT.text);
    expect(cut.asked).toEqual(['POST', 'POST']);
  });

  test('is not come back to where the plan for that is not allowed', async () => {
    const deployment = await KeptDeployment.begin(
      { dialect: as },
      { recovery: { plans: ['R4'], backoff_ms: 1 } },
    );
    const call = planOf(as, CALLS.slice(2, 3));
    const uncut = await deployment.ask(call);
    const cut = await deployment.ask(call, [{ kind: 'reset', at: { event: 4 } }]);
    expect(seen(cut)).toEqual(seen(uncut));
    expect(ofMethod(cut.requests, 'GET')).toEqual([]);
  });

  test('is a completion as well', async () => {
    const deployment = await KeptDeployment.begin({ dialect: as });
    const asking = { path: '/v1/completions' } as const;
    const uncut = await deployment.ask(planOf(as, [TEXT]), [], asking);
    const cut = await deployment.ask(planOf(as, [TEXT]), [{ kind: 'reset', at: { byte: 2_222 } }], asking);
    expect(seen(cut)).toEqual(seen(uncut));
    expect(cut.asked).toEqual(['POST', resume]);
  });

  test('is not asked for where there are several choices', async () => {
    const deployment = await KeptDeployment.begin({ dialect: as });
    const cut = await deployment.ask(plan, [{ kind: 'reset', at: { event: 20 } }], { more: { n: 2 } });
    expect(cut.asked).toEqual(['POST']);
    expect(cut.requests[0]?.headers['x-conversation-id']).toBeUndefined();
  });
});

describe('llama.cpp is asked to keep an answer', () => {
  const plan = planOf('llamacpp', [TEXT]);
  const idOf = ({ requests: [request] }: Answer) => request?.headers['x-conversation-id'];

  test('under a name that cannot be guessed, and a new one each time', async () => {
    const deployment = await KeptDeployment.begin({ dialect: 'llamacpp' });
    const [one, other] = [idOf(await deployment.ask(plan)), idOf(await deployment.ask(plan))];
    expect([one, other]).toEqual([expect.stringMatching(/^[0-9a-f]{32}$/), expect.any(String)]);
    expect(one).not.toBe(other);
  });

  test('only once it is known to be llama.cpp', async () => {
    const deployment = await KeptDeployment.begin({});
    const accent = {
      tell: telling({
        role: 'alone',
        usage: 'own',
        around: (envelope, choices) => ({ ...envelope, system_fingerprint: 'b4798-1782cdfe', choices }),
        choice: (delta, finish_reason) => ({ index: 0, delta, finish_reason }),
      }),
      error: () => [],
    };
    expect(idOf(await deployment.ask({ ...plan, accent }))).toBeUndefined();
    expect(idOf(await deployment.ask({ ...plan, accent }))).toBeDefined();
  });

  test.each(['openai', 'vllm', 'generic'])('and %s is not', async (dialect) => {
    const deployment = await KeptDeployment.begin({ dialect });
    expect(idOf(await deployment.ask(plan))).toBeUndefined();
  });

  test('not where the client has it kept for itself, and comes back to it itself', async () => {
    const deployment = await KeptDeployment.begin({ dialect: 'llamacpp' });
    const headers = { 'X-Conversation-Id': 'the clients' };
    const cut = await deployment.ask(plan, [{ kind: 'reset', at: { event: 20 } }], { headers });
    expect(cut.stream.text).toBe(TEXT.text);
    expect(idOf(cut)).toBe('the clients');
    expect(cut.asked).toEqual(['POST', 'POST']);
  });

  test('and to stop at it when the client leaves', async () => {
    const deployment = await KeptDeployment.begin({ dialect: 'llamacpp' });
    const leaves = new AbortController();
    const response = await deployment.open({ ...plan, delay_ms: 20 }, [], { signal: leaves.signal });
    await response.body?.getReader().read();
    leaves.abort();
    const [generation] = deployment.provider.generations;
    await generation?.over();
    expect(generation?.isStopped).toBe(true);
    expect(generation?.said).toBeLessThan(generation?.size ?? 0);
    expect(
      deployment.provider.requests.map(({ method, path, search }) => `${method} ${path}${search}`),
    ).toEqual(['POST /v1/chat/completions', expect.stringMatching(STOP)]);
    expect(deployment.provider.requests[1]?.headers.authorization).toBe('Bearer the client');
  });

  test('and to stop at one that is not waited for any longer', async () => {
    const deployment = await KeptDeployment.begin({ dialect: 'llamacpp', clocks: { idle_ms: 100 } });
    const { provider } = deployment;
    const slow = { ...plan, delay_ms: 1, keeps: { as: 'llamacpp', ring_bytes: 300 } } as const;
    const cut = await deployment.ask(slow, [{ kind: 'silence', at: { event: 6 } }]);
    expect(cut.stream.text).toBe(TEXT.text);
    await provider.waitForRequests(4);
    expect(ofMethod(provider.requests, 'GET')).toEqual([expect.stringMatching(RESUMES.llamacpp)]);
    expect(ofMethod(provider.requests, 'DELETE')).toEqual([expect.stringMatching(STOP)]);
    expect(ofMethod(provider.requests, 'POST')).toHaveLength(2);
  });

  test('but not to stop at one that has ended', async () => {
    const deployment = await KeptDeployment.begin({ dialect: 'llamacpp' });
    await deployment.ask(plan);
    expect((await deployment.ask(plan)).asked).toEqual(['POST']);
    expect(deployment.provider.requests.map(({ method }) => method)).toEqual(['POST', 'POST']);
  });

  test('for the time being no more, where something in front of it has no ear for that', async () => {
    const deployment = await KeptDeployment.begin({ dialect: 'llamacpp' });
    const { provider } = deployment;
    const cut = await deployment.ask({ parts: [TEXT] }, [{ kind: 'reset', at: { event: 20 } }]);
    expect(cut.stream.text).toBe(TEXT.text);
    expect(idOf(cut)).toBeDefined();
    await provider.waitForRequests(4);
    expect(ofMethod(provider.requests, 'DELETE')).toEqual([expect.stringMatching(STOP)]);
    await vi.waitFor(async () => expect(idOf(await deployment.ask({ parts: [TEXT] }))).toBeUndefined());
  });
});

describe('Cloudflare is not asked for the rest of an answer', () => {
  const reset = { kind: 'reset', at: { event: 20 } } as const;

  test('to which it has given no name', async () => {
    const deployment = await KeptDeployment.begin({ dialect: 'cloudflare' });
    const cut = await deployment.ask({ parts: [TEXT] }, [reset]);
    expect(cut.stream.text).toBe(TEXT.text);
    expect(cut.asked).toEqual(['POST', 'POST']);
  });

  test('with comments, since it is unknown whether it counts them', async () => {
    const deployment = await KeptDeployment.begin({ dialect: 'cloudflare' });
    const accent = {
      tell: telling({
        role: 'alone',
        usage: 'own',
        preface: () => [': waiting\n\n'],
        around: (envelope, choices) => ({ ...envelope, choices }),
        choice: (delta, finish_reason) => ({ index: 0, delta, finish_reason }),
      }),
      error: () => [],
    };
    const cut = await deployment.ask({ ...planOf('cloudflare', [TEXT]), accent }, [reset]);
    expect(cut.stream.text).toBe(TEXT.text);
    expect(cut.asked).toEqual(['POST', 'POST']);
  });

  test('where the client has left: the provider continues it, and cannot be stopped', async () => {
    const deployment = await KeptDeployment.begin({ dialect: 'cloudflare' });
    const leaves = new AbortController();
    const plan = { ...planOf('cloudflare', [TEXT]), delay_ms: 2 };
    const response = await deployment.open(plan, [], { signal: leaves.signal });
    await response.body?.getReader().read();
    leaves.abort();
    const [generation] = deployment.provider.generations;
    await generation?.over();
    expect(generation?.isStopped).toBe(false);
    expect(deployment.provider.requests).toHaveLength(1);
  });
});
