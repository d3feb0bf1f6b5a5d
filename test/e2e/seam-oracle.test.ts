import { afterAll, beforeAll, describe, test, vi } from 'vitest';
import { prefixOf } from '../../src/plans/seam/mode.ts';
import { caseShare, seedOr } from '../cases.ts';
import { KINDS } from '../plans/seam/cuts.ts';
import { isDecidable, isPlain, nudgeAfter } from '../plans/seam/decidable.ts';
import { DISOBEDIENT_WAYS, type Manner, OBEDIENT, PREFILLED } from '../plans/seam/manners.ts';
import { TEXT_KINDS } from '../plans/seam/texts.ts';
import type { ChatClient } from './clients/chat-client.ts';
import { DialectDeployment } from './dialect-deployment.ts';
import { planOf, type SocketCut, socketCuts } from './seams/cases.ts';
import { NUDGED, type Says, SETTINGS, type Setting, TRIED } from './seams/settings.ts';
import { expectNoWarnings } from './warnings.ts';

/**
 * Runs the grammar of `test/plans/seam/oracle.test.ts` over sockets, as applications see it. Set `HOLDFAST_SEED` and
 * `HOLDFAST_SDK_CASES` to search further. A failure prints the command that repeats its single case
 * (`HOLDFAST_SDK_CASE`).
 */
const SEED = seedOr(20_261_122);
const CASES = Number(process.env.HOLDFAST_SDK_CASES ?? caseShare(25));
const ONLY = process.env.HOLDFAST_SDK_CASE;

/** Answers in parallel within each test. */
const LANES = 4;
vi.setConfig({ maxConcurrency: 8, testTimeout: 20_000 + CASES * 200 });

const DISOBEYED = [...NUDGED, TRIED];
const SHARE = Math.ceil(CASES / (SETTINGS.length + DISOBEDIENT_WAYS.length));

interface Case {
  readonly question: string;
  readonly setting: Setting;
  readonly client: ChatClient;
  readonly says: Says;
  readonly cut: SocketCut;
}

/** How many failed answers a test prints. */
const PRINTED = 3;

expectNoWarnings();
let deployment: DialectDeployment;
const clients = new Map<Setting['clients'][number], ChatClient>();
beforeAll(async () => {
  deployment = await DialectDeployment.start();
  for (const connect of SETTINGS.flatMap((setting) => setting.clients))
    clients.set(connect, connect(deployment.url));
});
afterAll(() => deployment.close());

const nth = <Value>(values: readonly Value[], index: number): Value => values[index % values.length] as Value;

function clientOf(setting: Setting, index: number): ChatClient {
  const client = clients.get(nth(setting.clients, index));
  if (!client) throw new Error('every client was connected');
  return client;
}

/** The text that a client ends up with, and the requests for the rest of its answer. */
interface Told {
  readonly text: string;
  readonly asked: readonly Rest[];
}

interface Rest {
  readonly kind: keyof Says;
  readonly sent: string;
}

/** Gives the same answers, and records every request for the rest in `asked`. */
function observed(says: Says, asked: Rest[]): Says {
  const seen =
    (kind: keyof Says): Manner =>
    (each) => {
      asked.push({ kind, sent: each.sent });
      return says[kind](each);
    };
  return { prefill: seen('prefill'), nudge: seen('nudge') };
}

async function told({ question, setting, client, says, cut }: Case): Promise<Told> {
  const { upstream, parameters = {} } = setting;
  // A separate model for each case, so that what is learnt about it affects no other.
  const model = `${upstream}/${setting.model}/${question.replaceAll(/[^a-z0-9]+/gi, '-')}`;
  const ask = async (content: string, each: SocketCut): Promise<Told> => {
    const asked: Rest[] = [];
    deployment.plan(content, { ...planOf(setting, each), says: observed(says, asked) });
    const { text } = await client.ask({ model, content, tools: [], parameters });
    return { text, asked };
  };
  if (setting.isTaught) await ask(`${question}, before`, LESSON);
  return ask(question, cut);
}

/** Cut within a word that occurs nowhere else, so that the continuation reveals how the model treats a prefix. */
const LESSON: SocketCut = {
  kind: 'a lesson',
  whole: 'The tide comes in twice a day, and what holds fast to the rock is there when it is out again.',
  delivered: 'The tide comes in twice a day, and what holds fast to the ro',
  sizes: [],
  chunk: 'token',
  fault: 'fin_in_chunk',
  again: undefined,
};

/** A case proves something only if the rest was requested, in the expected way and from the cut on. */
function otherwiseAsked({ setting, says, cut: { whole, delivered } }: Case, [first]: readonly Rest[]) {
  const kind = setting.asks(delivered, says);
  // Some providers send the end of an answer together with its last word.
  if (delivered === whole && !first) return undefined;
  if (first?.kind !== kind) return `asked for by a ${first?.kind ?? 'replay'}`;
  const isThere = first === undefined || first.sent.trimEnd() === prefixOf(delivered, false).sent;
  return isThere ? undefined : `asked for behind ${JSON.stringify(first.sent)}`;
}

/** `problem` returns what is wrong with a text, or `undefined`. */
async function check(
  title: string,
  cases: readonly Case[],
  problem: (each: Case, text: string) => string | undefined,
): Promise<void> {
  const waiting = [...cases.entries()].filter(([index]) => ONLY === undefined || index === Number(ONLY));
  const failures: string[] = [];
  const lane = async () => {
    for (let next = waiting.shift(); next; next = waiting.shift()) {
      const [index, each] = next;
      const { text, asked, error } = await told(each).then(
        (said) => ({ ...said, error: undefined }),
        (reason: unknown) => ({ text: '', asked: [], error: String(reason) }),
      );
      const wrong = error ?? problem(each, text) ?? otherwiseAsked(each, asked);
      if (wrong === undefined) continue;
      const seen = JSON.stringify({ client: each.client.name, ...each.cut, text }, undefined, 1);
      const variables = `HOLDFAST_SEED=${SEED} HOLDFAST_SDK_CASES=${CASES} HOLDFAST_SDK_CASE=${index}`;
      failures.push(
        `${wrong}: ${seen}\nagain: ${variables} vitest run test/e2e/seam-oracle.test.ts -t '${title}'`,
      );
    }
  };
  await Promise.all(Array.from({ length: LANES }, lane));
  if (failures.length > 0)
    throw new Error(
      `${failures.length} of ${cases.length} answers:\n${failures.slice(0, PRINTED).join('\n')}`,
    );
}

describe('every character once, in every SDK', () => {
  test.concurrent.each(SETTINGS.map((setting, index) => ({ setting, index, name: setting.name })))(
    `$name (${SHARE} cases, seed ${SEED})`,
    async ({ setting, index, name }) => {
      const cuts = socketCuts(KINDS, () => true, SEED + index, SHARE);
      const cases = cuts.map((cut, place): Case => {
        const says = nth(setting.promised, place);
        const client = clientOf(setting, Math.floor(place / setting.promised.length) + place);
        return { question: `${name}, ${place}`, setting, client, says, cut };
      });
      await check(name, cases, ({ cut }, text) => (text === cut.whole ? undefined : 'not the uncut text'));
    },
  );
});

describe('a model that does not do as it is asked loses no character', () => {
  test.concurrent.each(DISOBEDIENT_WAYS.map((each, index) => ({ ...each, index })))(
    `it $title (${SHARE} cases, seed ${SEED})`,
    async ({ title, lead, says: manner, index }) => {
      const cuts = socketCuts(
        KINDS,
        (cut) => isDecidable(cut, lead(nudgeAfter(cut))),
        SEED - 1 - index,
        SHARE,
      );
      const cases = cuts.map((cut, place): Case => {
        const setting = nth(DISOBEYED, place);
        // If a prefill leaves the seam in doubt, Holdfast asks again by nudge.
        const says =
          setting === TRIED
            ? { prefill: manner, nudge: OBEDIENT['repeats the anchor'] }
            : { prefill: PREFILLED['answers anew'], nudge: manner };
        const client = clientOf(setting, Math.floor(place / DISOBEYED.length));
        return {
          question: `it ${title}, ${place}`,
          setting,
          client,
          says,
          cut: { ...cut, again: undefined },
        };
      });
      await check(`it ${title} `, cases, ({ cut }, text) => {
        const { kind, whole, delivered } = cut;
        if (
          !text.startsWith(delivered) ||
          !text.slice(delivered.length).endsWith(whole.slice(delivered.length))
        )
          return 'not all of the text';
        const isExact = !TEXT_KINDS[kind]?.repeats && isPlain(cut, lead(nudgeAfter(cut)));
        return isExact && text !== whole ? 'some of the text twice' : undefined;
      });
    },
  );
});
