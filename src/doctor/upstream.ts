import type { Target } from '../proxy/upstream/target.ts';
import type { DoctorContext } from './doctor-context.ts';
import { type Finding, Findings } from './finding.ts';
import { chooseModel } from './model-choice.ts';
import { examineModelList } from './model-list.ts';
import { examineAddress } from './upstream-address.ts';
import { examinePrefill } from './upstream-prefill.ts';
import { examineStream, streamRequest } from './upstream-stream.ts';

/** One upstream, from its name to the end of an answer. What cannot be tried because of what failed is left out. */
export async function examineUpstream(context: DoctorContext, target: Target): Promise<Finding[]> {
  const { configuration, authorities, requests } = context;
  const { base_url } = target.upstream;
  const findings = new Findings(`upstream ${target.name}`);
  const ca = authorities[new URL(base_url).origin];
  if (!(await examineAddress(findings, { base_url, ca }))) return findings.all;
  const listed = await examineModelList(findings, context, target);
  const last = findings.all.find(({ name }) => name === 'credentials');
  // What is refused without a key would be refused again.
  if (last?.status === 'fail' || (last?.status === 'skipped' && last.remedy !== undefined))
    return findings.all;

  const chosen = chooseModel(configuration, target.name, context.model, listed);
  if (!chosen) {
    findings.skip('streaming', 'no model of it is known', 'name one with --model.');
    return findings.all;
  }
  if (!requests) {
    findings.skip('streaming', `--no-requests: ${chosen.model} is not asked`);
    return findings.all;
  }
  const request = streamRequest(context, target, chosen.model);
  const answer = await examineStream(findings, context, target, request, listed);
  if (answer) await examinePrefill(findings, context, target, request, answer);
  return findings.all;
}
