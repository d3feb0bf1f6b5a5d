import type { Configuration } from '../config/configuration.ts';
import { ModelPattern } from '../config/model-pattern.ts';
import { suggestion } from '../config/problem.ts';
import { RouteTable } from '../proxy/upstream/route-table.ts';

/** Models that are no use for a chat, by their names. */
const NO_CHAT =
  /embed|whisper|tts|audio|realtime|transcri|speech|dall-e|image|moderation|rerank|guard|ocr|vision-only|search|sora|video/i;

export interface ChosenModel {
  readonly model: string;
  /** Whoever chose it. */
  readonly from: '--model' | 'the routes' | '/models';
}

/** What an upstream is to be asked for; `undefined` where nothing says. `listed`: by the upstream itself. */
export function chooseModel(
  configuration: Configuration,
  upstream: string,
  given: string | undefined,
  listed: readonly string[],
): ChosenModel | undefined {
  if (given !== undefined) {
    const target = new RouteTable(configuration).targets(given).find(({ name }) => name === upstream);
    if (target) return { model: target.model ?? given, from: '--model' };
  }
  const routed = configuration.routes.flatMap(({ model, targets }) =>
    targets.filter((target) => target.upstream === upstream).map((target) => target.model ?? model),
  );
  const plain = routed.find((model) => !model.includes('*'));
  if (plain !== undefined) return { model: plain, from: 'the routes' };
  const chats = listed.filter((model) => !NO_CHAT.test(model));
  const patterns = routed.map((model) => new ModelPattern(model));
  const model = chats.find((one) => patterns.some((pattern) => pattern.matches(one))) ?? chats[0];
  return model === undefined ? undefined : { model, from: '/models' };
}

/** ` It lists gpt-4o. Did you mean …`: for a model that the upstream does not list. */
export const nearModels = (model: string, listed: readonly string[]): string => suggestion(model, listed);
