import fc from 'fast-check';
import { z } from 'zod';
import { dictionaryOf, members, text, value } from './values.ts';

/**
 * Returns values for a zod schema, mostly valid, with a rare invalid member. Returns undefined for
 * a schema without named members (`z.custom`, `z.record`), because plausible values depend on the
 * service.
 */
export function valuesFor(schema: z.ZodType): fc.Arbitrary<unknown> | undefined {
  const shape = shapes.parse(z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' }));
  return shape.properties && fromSchema(shape);
}

/** Subset of JSON Schema that zod generates for the schemas of this repository. */
interface Shape {
  type?: string | string[] | undefined;
  const?: unknown;
  enum?: unknown[] | undefined;
  anyOf?: Shape[] | undefined;
  properties?: Record<string, Shape> | undefined;
  required?: string[] | undefined;
  items?: Shape | undefined;
  pattern?: string | undefined;
  format?: string | undefined;
  minimum?: number | undefined;
  maximum?: number | undefined;
  maxLength?: number | undefined;
}

const shapes: z.ZodType<Shape> = z.lazy(() =>
  z.object({
    type: z.union([z.string(), z.array(z.string())]).optional(),
    const: z.unknown().optional(),
    enum: z.array(z.unknown()).optional(),
    anyOf: z.array(shapes).optional(),
    properties: z.record(z.string(), shapes).optional(),
    required: z.array(z.string()).optional(),
    items: shapes.optional(),
    pattern: z.string().optional(),
    format: z.string().optional(),
    minimum: z.number().optional(),
    maximum: z.number().optional(),
    maxLength: z.number().optional(),
  }),
);

const fromSchema = (shape: Shape): fc.Arbitrary<unknown> =>
  fc.oneof({ weight: 9, arbitrary: validFor(shape) }, { weight: 1, arbitrary: value });

function validFor(shape: Shape): fc.Arbitrary<unknown> {
  if (shape.enum) return fc.constantFrom(...shape.enum);
  if (shape.const !== undefined) return fc.constant(shape.const);
  if (shape.anyOf) return fc.oneof(...shape.anyOf.map(fromSchema));
  if (Array.isArray(shape.type))
    return fc.oneof(...shape.type.map((type) => validFor({ ...shape, type })));
  switch (shape.type) {
    case 'object':
      return shape.properties ? objects(shape.properties, shape.required ?? []) : members;
    case 'array':
      return fc.array(shape.items ? fromSchema(shape.items) : value, { maxLength: 3 });
    case 'string':
      return texts(shape);
    case 'integer':
      return fc.integer({ min: bounded(shape.minimum, -5), max: bounded(shape.maximum, 1000) });
    case 'number':
      return fc.double({ min: shape.minimum ?? -1e9, max: shape.maximum ?? 1e9, noNaN: true });
    case 'boolean':
      return fc.boolean();
    case 'null':
      return fc.constant(null);
    default:
      return value;
  }
}

const bounded = (bound: number | undefined, otherwise: number): number =>
  Math.max(-(2 ** 31), Math.min(bound ?? otherwise, 2 ** 31 - 1));

function objects(properties: Record<string, Shape>, required: string[]): fc.Arbitrary<unknown> {
  const own = fc.record(
    Object.fromEntries(Object.entries(properties).map(([key, shape]) => [key, fromSchema(shape)])),
    { requiredKeys: required.filter((key) => Object.hasOwn(properties, key)) },
  );
  const withMore = fc
    .tuple(own, members)
    .map(([object, more]) => dictionaryOf([...Object.entries(object), ...Object.entries(more)]));
  return fc.oneof({ weight: 4, arbitrary: own }, { weight: 1, arbitrary: withMore });
}

function texts({ pattern, format, maxLength }: Shape): fc.Arbitrary<string> {
  const dates = fc.constantFrom('2026-01-01', '2024-02-29', '0001-01-01', '9999-12-31');
  const urls = fc.constantFrom(
    'https://push.example.com',
    'http://127.0.0.1:1/x',
    'https://[::1]',
    'http://a..b',
  );
  const arbitrary =
    format === 'date'
      ? dates
      : format === 'uri'
        ? urls
        : pattern === undefined
          ? text
          : matching(pattern);
  return maxLength === undefined ? arbitrary : arbitrary.map((given) => given.slice(0, maxLength));
}

/**
 * Returns texts that match a pattern. For the few patterns that fast-check does not support,
 * returns any text.
 */
function matching(pattern: string): fc.Arbitrary<string> {
  try {
    return fc.stringMatching(new RegExp(pattern), { size: 'small' });
  } catch {
    return text;
  }
}
