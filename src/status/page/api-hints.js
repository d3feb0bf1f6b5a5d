/** A replica that listens on all addresses is reached at the host of this page. */
const EVERY_ADDRESS = /^(http:\/\/)(0\.0\.0\.0|\[::\])(?=:|$)/;

const RUN = '{run_id}';
const TRACE = '{trace_id}';

/** Commands with the address at which the API is reachable from here. `hostname`: of this page. */
export function commandsOf({ url, ...commands }, hostname) {
  const reached = url.replace(EVERY_ADDRESS, `$1${hostname}`);
  const from = (command) => command.replace(url, reached);
  return { first: from(commands.try), resume: (run) => from(commands.resume).replace(RUN, run) };
}

/** The template as a link to this run; undefined without a template, or if it needs a trace and there is none. */
export function linkTo(template, { run, trace_id }) {
  if (template === undefined || (template.includes(TRACE) && trace_id === undefined)) return undefined;
  return template.replaceAll(RUN, encodeURIComponent(run)).replaceAll(TRACE, trace_id);
}
