import { answerOf } from './answer.ts';
import type { Case } from './cases.ts';
import { ask, type Clocks, type Gateway, type Seen } from './client/client.ts';
import { judge, type Verdict } from './judge.ts';
import { markerOf, type Provider } from './provider/provider.ts';

export interface Result {
  readonly asked: Case;
  readonly verdict: Verdict;
  /** How many the provider got. */
  readonly requests: number;
  readonly seen: Seen;
}

export interface Run {
  readonly cases: readonly Case[];
  readonly seed: number;
  readonly provider: Provider;
  readonly gateway: Gateway;
  readonly clocks: Clocks;
  /** Cases at a time. */
  readonly concurrency: number;
  /** For the cases in which a replica dies. */
  readonly death?: Death | undefined;
}

export interface Death {
  /** Resolves when the gateway has been killed. */
  readonly kill: () => Promise<void>;
  /** The replica that is asked again. Without one, the answer of the replica that died is judged. */
  readonly second?: Gateway | undefined;
}

/** All results, in the order of the cases. `judged` gets each of them at once. */
export async function runCases(run: Run, judged: (result: Result) => void = () => {}): Promise<Result[]> {
  const deadly = run.cases.filter(({ trouble }) => trouble === 'replica_death');
  const others = run.cases.filter((asked) => !deadly.includes(asked));
  const results = new Map<Case, Result>();
  const keep = (asked: Case, seen: Seen) => {
    const requests = run.provider.requestsOf(asked);
    const verdict = judge(answerOf(asked, run.seed), seen.shown, seen.end, requests);
    const result = { asked, verdict, requests, seen };
    results.set(asked, result);
    judged(result);
  };
  const queue = others.values();
  const work = async () => {
    for (const asked of queue) keep(asked, await ask(asked, promptOf(asked), run.gateway, run.clocks));
  };
  await Promise.all(Array.from({ length: run.concurrency }, work));
  if (run.death && deadly.length > 0)
    for (const [asked, seen] of await killed(run, run.death, deadly)) keep(asked, seen);
  return run.cases.flatMap((asked) => results.get(asked) ?? []);
}

const promptOf = (asked: Case): string => `Tell me what you know about kelp. (${markerOf(asked)})`;

/** The gateway dies once, while it gives all of these answers. */
async function killed(
  { gateway, clocks }: Run,
  { kill, second }: Death,
  cases: readonly Case[],
): Promise<[Case, Seen][]> {
  const under_way = cases.map((asked) => {
    const { promise: shows, resolve } = Promise.withResolvers<void>();
    const seen = ask(asked, promptOf(asked), gateway, clocks, resolve);
    return { asked, seen, begun: Promise.race([shows, seen]) };
  });
  await Promise.all(under_way.map(({ begun }) => begun));
  await kill();
  return Promise.all(
    under_way.map(async ({ asked, seen }): Promise<[Case, Seen]> => {
      const first = await seen;
      const asksAgain = second && first.end.kind === 'error';
      return [asked, asksAgain ? await ask(asked, promptOf(asked), second, clocks) : first];
    }),
  );
}
