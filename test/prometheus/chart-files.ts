import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';

const pathOf = (name: string): string =>
  fileURLToPath(new URL(`../../helm/holdfast/files/${name}`, import.meta.url));

export const RULES_FILE = pathOf('rules.yaml');

export interface Rule {
  readonly record?: string;
  readonly alert?: string;
  readonly expr: string;
  readonly for?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
}

interface RuleFile {
  readonly groups: readonly { readonly name: string; readonly rules: readonly Rule[] }[];
}

export const RULES: readonly Rule[] = (parse(readFileSync(RULES_FILE, 'utf8')) as RuleFile).groups.flatMap(
  ({ rules }) => rules,
);

export interface Panel {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly description?: string;
  readonly datasource?: unknown;
  readonly gridPos: { readonly h: number; readonly w: number; readonly x: number; readonly y: number };
  readonly fieldConfig?: { readonly defaults: { readonly unit?: string } };
  readonly targets?: readonly {
    readonly expr: string;
    readonly legendFormat: string;
    readonly refId: string;
  }[];
}

interface Variable {
  readonly name: string;
  readonly type: string;
  readonly definition?: string;
}

export interface Dashboard {
  readonly uid: string;
  readonly schemaVersion: number;
  readonly panels: readonly Panel[];
  readonly templating: { readonly list: readonly Variable[] };
  readonly annotations: { readonly list: readonly { readonly name: string; readonly expr?: string }[] };
}

export const DASHBOARD = JSON.parse(readFileSync(pathOf('dashboard.json'), 'utf8')) as Dashboard;

/** A query of the dashboard, and its location. */
export interface DashboardQuery {
  readonly where: string;
  readonly expression: string;
}

/** The queries that Grafana would send with everything selected. */
export function dashboardQueries(rate_interval: string, range: string): readonly DashboardQuery[] {
  const { panels, annotations } = DASHBOARD;
  const filled = (where: string, expression: string): DashboardQuery => ({
    where,
    expression: expression
      .replaceAll('$__rate_interval', rate_interval)
      .replaceAll('$__range', range)
      .replaceAll(/\$(namespace|job|instance|upstream)\b/g, '.*'),
  });
  return [
    ...panels.flatMap(({ title, targets = [] }) =>
      targets.map(({ expr, refId }) => filled(`${title} (${refId})`, expr)),
    ),
    ...annotations.list.flatMap(({ name, expr }) => (expr === undefined ? [] : [filled(name, expr)])),
  ];
}
