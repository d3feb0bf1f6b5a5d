/** A replica that listens on every address is reached under the one that the page has. */
const EVERY_ADDRESS = /^(http:\/\/)(0\.0\.0\.0|\[::\])(?=:|$)/;

const RUN = '{run_id}';
const TRACE = '{trace_id}';

/** Commands for the address by which the API can be reached from here. `hostname`: that of this page. */
export function commandsOf({ url, ...commands }, hostname) {
  const reached = url.replace(EVERY_ADDRESS, `$1${hostname}`);
  const from = (command) => command.replace(url, reached);
  return { first: from(commands.try), resume: (run) => from(commands.resume).replace(RUN, run) };
}

/** The template as a link to this run; undefined where there is no template, or it needs a trace that there is not. */
export function linkTo(template, { run, trace_id }) {
  if (template === undefined || (template.includes(TRACE) && trace_id === undefined)) return undefined;
  return template.replaceAll(RUN, encodeURIComponent(run)).replaceAll(TRACE, trace_id);
}
