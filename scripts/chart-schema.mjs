/** A value that contains `${NAME}` has the required type only after Holdfast has replaced the reference. */
const REFERENCE = { type: 'string', pattern: '\\$\\{' };

/** Updates the configuration's schema within that of the chart, so that Helm refuses what Holdfast would refuse. */
export function chartSchema(schema, configuration) {
  const { $schema: _, ...root } = withReferences(configuration);
  return { ...schema, $defs: { configuration: root } };
}

function withReferences({ properties, items, additionalProperties, default: _, examples: __, ...schema }) {
  if (schema.type !== 'object' && schema.type !== 'array') {
    const { description, ...rest } = schema;
    return { ...(description && { description }), anyOf: [rest, REFERENCE] };
  }
  return {
    ...schema,
    ...(properties && {
      properties: Object.fromEntries(
        Object.entries(properties).map(([key, child]) => [key, withReferences(child)]),
      ),
    }),
    ...(items && { items: withReferences(items) }),
    ...(additionalProperties !== undefined && {
      additionalProperties:
        typeof additionalProperties === 'object'
          ? withReferences(additionalProperties)
          : additionalProperties,
    }),
  };
}
