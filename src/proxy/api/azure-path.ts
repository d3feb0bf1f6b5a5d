import { type JsonBody, withFields } from '../../lib/json-body.ts';

/**
 * Azure's prefixes for what other providers serve under `/v1`. Its SDKs put a deployment into the path for some
 * operations.
 */
const AZURE = /^\/openai(?:\/v1|\/deployments\/([^/?]+))?(?=\/)/;

/** Maps an Azure path to the one under `/v1`. Other paths stay as they are. */
export const underV1 = (url: string): string => url.replace(AZURE, '/v1');

/** The deployment in a request's path, which serves as the model. `url`: as the client wrote it. */
export function deploymentIn(url: string): string | undefined {
  const [, written] = AZURE.exec(url) ?? [];
  if (written === undefined) return undefined;
  try {
    return decodeURIComponent(written);
  } catch {
    return written;
  }
}

/**
 * Returns the body with the deployment as its model. As at Azure, the deployment takes precedence over a model in the
 * body.
 */
export function forDeployment(body: JsonBody, deployment: string | undefined): JsonBody {
  const isNamed = deployment === undefined || body.fields.model === deployment;
  return isNamed ? body : withFields(body, { model: deployment });
}
