import { loadConfiguration, readConnections } from '../config/load.ts';
import { redactor } from '../config/redaction.ts';
import { examine } from '../doctor/examine.ts';
import type { Finding, FindingStatus } from '../doctor/finding.ts';
import { systemTime } from '../lib/time.ts';
import { UpstreamKeys } from '../proxy/upstream/upstream-keys.ts';
import type { Invocation } from './command.ts';
import { assignmentsOf } from './options.ts';
import { givenKey } from './replica-port.ts';
import { orProblems, painter, printable, printJson, type Style } from './terminal.ts';

const STYLES: Readonly<Record<FindingStatus, Style>> = {
  ok: 'green',
  warn: 'yellow',
  fail: 'red',
  skipped: 'dim',
};
const NAME_WIDTH = 16;

export async function run({ values, switches }: Invocation): Promise<number> {
  const json = switches.has('json');
  const client_key = givenKey({ values }, process.env);
  const flags = assignmentsOf(values);
  const loaded = await orProblems(json, async () => {
    const { configuration, warnings } = loadConfiguration({
      file: values.config,
      flags,
      environment: process.env,
    });
    const connections = readConnections(configuration);
    const keys = await UpstreamKeys.open(configuration, { time: systemTime, onRenewal: () => {} });
    return { warnings, connections, keys };
  });
  if (!loaded) return 2;
  const { warnings, connections, keys } = loaded;
  const { configuration } = keys;
  const found = await examine({
    configuration,
    connections,
    client_key,
    model: values.model,
    requests: !switches.has('no-requests'),
  });
  keys.close();
  const hide = redactor(configuration, client_key);
  const findings = [...warnings.map(warningOf), ...found].map((finding) => redactedFinding(finding, hide));
  const summary = summaryOf(findings);
  if (json) printJson({ ok: summary.fail === 0, summary, checks: findings });
  else process.stdout.write(reportText(findings, summary));
  return summary.fail === 0 ? 0 : 1;
}

const warningOf = (warning: string): Finding => ({
  subject: 'configuration',
  name: 'doubt',
  status: 'warn',
  seen: warning,
});

/** Hides keys that a provider or proxy may have quoted in its messages. */
const redactedFinding = ({ seen, remedy, ...finding }: Finding, hide: (text: string) => string): Finding => ({
  ...finding,
  seen: hide(seen),
  ...(remedy !== undefined && { remedy: hide(remedy) }),
});

type Summary = Record<FindingStatus, number>;

function summaryOf(findings: readonly Finding[]): Summary {
  const summary: Summary = { ok: 0, warn: 0, fail: 0, skipped: 0 };
  for (const { status } of findings) summary[status]++;
  return summary;
}

function reportText(findings: readonly Finding[], summary: Summary): string {
  const paint = painter(process.stdout, process.env);
  const lines: string[] = [];
  let subject = '';
  for (const finding of findings) {
    if (finding.subject !== subject)
      lines.push(...(subject === '' ? [] : ['']), paint(finding.subject, 'bold'));
    subject = finding.subject;
    const { name, status, seen, remedy } = finding;
    lines.push(`  ${paint(status.padEnd(8), STYLES[status])}${name.padEnd(NAME_WIDTH)}${printable(seen)}`);
    if (remedy !== undefined)
      lines.push(`${' '.repeat(10 + NAME_WIDTH)}${paint('→', 'bold')} ${printable(remedy)}`);
  }
  const { ok, warn, fail, skipped } = summary;
  lines.push('', `${ok} ok, ${warn} warnings, ${fail} failed, ${skipped} skipped`, '');
  return lines.join('\n');
}
