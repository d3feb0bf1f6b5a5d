import type { Configuration } from '../config/configuration.ts';
import { ModelPattern } from '../config/model-pattern.ts';
import { RouteTable } from '../proxy/upstream/route-table.ts';
import type { Target } from '../proxy/upstream/target.ts';
import type { DoctorContext } from './doctor-context.ts';
import { type Finding, Findings } from './finding.ts';
import { examineModelList } from './model-list.ts';
import { examineAddress } from './upstream-address.ts';
import { examinePrefill, examineStream, streamRequest } from './upstream-answer.ts';

/** Tests one upstream, from its host name to the end of an answer. Leaves out what depends on a failed check. */
export async function examineUpstream(context: DoctorContext, target: Target): Promise<Finding[]> {
  const { configuration, connections, requests } = context;
  const { base_url } = target.upstream;
  const findings = new Findings(`upstream ${target.name}`);
  const settings = connections[new URL(base_url).origin] ?? {};
  if (!(await examineAddress(findings, base_url, settings))) return findings.all;
  const listed = await examineModelList(findings, context, target);
  const last = findings.all.find(({ name }) => name === 'credentials');
  // Without a valid key, the upstream would refuse again.
  if (last?.status === 'fail' || (last?.status === 'skipped' && last.remedy !== undefined))
    return findings.all;

  const model = chooseModel(configuration, target.name, context.model, listed);
  if (model === undefined) {
    findings.skip('streaming', 'the doctor knows no model of this upstream', 'name one with --model.');
    return findings.all;
  }
  if (!requests) {
    findings.skip('streaming', `--no-requests: ${model} wasn't tested`);
    return findings.all;
  }
  const request = streamRequest(context, target, model);
  const answer = await examineStream(findings, context, target, request, listed);
  if (answer) await examinePrefill(findings, context, target, request, answer);
  return findings.all;
}

/** Names of models that are of no use for a chat. */
const NO_CHAT =
  /embed|whisper|tts|audio|realtime|transcri|speech|dall-e|image|moderation|rerank|guard|ocr|vision-only|search|sora|video/i;

/** The model to ask an upstream for; `undefined` if nothing names one. `listed`: by the upstream itself. */
function chooseModel(
  configuration: Configuration,
  upstream: string,
  given: string | undefined,
  listed: readonly string[],
): string | undefined {
  if (given !== undefined) {
    const target = new RouteTable(configuration).targets(given).find(({ name }) => name === upstream);
    if (target) return target.model ?? given;
  }
  const routed = configuration.routes.flatMap(({ model, targets }) =>
    targets.filter((target) => target.upstream === upstream).map((target) => target.model ?? model),
  );
  const plain = routed.find((model) => !model.includes('*'));
  if (plain !== undefined) return plain;
  const chats = listed.filter((model) => !NO_CHAT.test(model));
  const patterns = routed.map((model) => new ModelPattern(model));
  return chats.find((one) => patterns.some((pattern) => pattern.matches(one))) ?? chats[0];
}
