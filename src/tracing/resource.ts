import {
  defaultResource,
  detectResources,
  type Resource,
  resourceAttributesEnvDetector,
  resourceFromAttributes,
  serviceInstanceIdDetector,
  serviceNameEnvDetector,
} from '@opentelemetry/resources';
import { VERSION } from '../lib/version.ts';

/** Who sends the traces: what is configured wins over the environment, which wins over what we say of ourselves. */
export function resourceNamed(service_name: string | undefined): Resource {
  const ours = resourceFromAttributes({ 'service.name': 'holdfast', 'service.version': VERSION });
  const detectors = [serviceInstanceIdDetector, resourceAttributesEnvDetector, serviceNameEnvDetector];
  const configured = resourceFromAttributes(
    service_name === undefined ? {} : { 'service.name': service_name },
  );
  return defaultResource().merge(ours).merge(detectResources({ detectors })).merge(configured);
}
