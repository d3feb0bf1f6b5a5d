import { serve } from '../server/serve.ts';
import type { Invocation } from './command.ts';
import { assignmentsOf } from './options.ts';

export const run = ({ values }: Invocation): Promise<void> =>
  serve({ file: values.config, flags: assignmentsOf(values), environment: process.env });
