/** A value that holds `${NAME}` has the type it needs only after Holdfast has replaced it. */
const REFERENCE = { type: 'string', pattern: '\\$\\{' };

/**
 * The schema of the chart's values, brought up to date with that of the configuration, which stands under `config` there:
 * Helm refuses what Holdfast would refuse.
 */
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
