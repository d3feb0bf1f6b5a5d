// What `helm test` runs in a pod of the image: is a replica alive and ready, and does the API answer through the Service?
// Arguments: the base URLs of the admin port and of the API, and for how long to try, in seconds.
import { setTimeout as sleep } from 'node:timers/promises';

const ATTEMPT_MS = 5000;
const PAUSE_MS = 500;

const [admin, api, limit_s] = process.argv.slice(1);
const deadline = Date.now() + Number(limit_s) * 1000;

// The last one is answered by Holdfast itself: it takes no key, and no provider is asked.
const urls = [`${admin}/livez`, `${admin}/readyz`, `${api}/holdfast/v1/openapi.json`];

/** Why there is no good answer; undefined when there is. */
async function problemWith(url) {
  try {
    const answer = await fetch(url, { signal: AbortSignal.timeout(ATTEMPT_MS) });
    const body = await answer.text();
    return answer.ok ? undefined : `${answer.status} ${body}`;
  } catch (error) {
    return error.cause?.message ?? error.message;
  }
}

for (const url of urls) {
  // The names and policies of this test are as new as its pod, and take a moment to get to every node.
  let problem = await problemWith(url);
  while (problem !== undefined && Date.now() < deadline) {
    await sleep(PAUSE_MS);
    problem = await problemWith(url);
  }
  console.log(problem === undefined ? `ok    ${url}` : `FAIL  ${url}: ${problem}`);
  if (problem !== undefined) process.exit(1);
}
