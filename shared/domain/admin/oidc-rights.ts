import { z } from 'zod';
import { type OperatorRole, operatorRoles } from './operator.ts';

/** Rights of people who log in by OpenID Connect (operate/single-sign-on.md#rights). */

/** Claims whose values `OIDC_ROLES` maps to rights. */
export const rightsClaims = ['groups', 'roles'] as const;

const maxValues = 200;

/** Right of the people who have a value. Without `apps`, for all apps. */
const entry = z.strictObject({
  role: z.enum(operatorRoles, `expected one of ${operatorRoles.join(', ')}`),
  apps: z
    .array(z.string('expected the id of an app').min(1).max(64), 'expected a list of app ids')
    .min(1, 'expected at least one app')
    .max(100, 'must be at most 100 apps')
    .nullish(),
});

/** Parsed `OIDC_ROLES`. */
export const rightsMap = z
  .record(z.string().min(1).max(500), entry)
  .refine((map) => Object.keys(map).length > 0, 'expected at least one value of a claim')
  .refine((map) => Object.keys(map).length <= maxValues, `must be at most ${maxValues} values`);
export type RightsMap = z.infer<typeof rightsMap>;

/** Rights of a person. `apps` is null for all apps. */
export interface Rights {
  role: OperatorRole;
  apps: string[] | null;
}

/**
 * Returns the values of the claims: a claim is a text or a list of texts. Other claims count as
 * empty.
 */
export function valuesOf(claims: Readonly<Record<string, unknown>>): string[] {
  const found = rightsClaims.flatMap((name) => claims[name] ?? []);
  return found.filter((value) => typeof value === 'string');
}

/**
 * Returns the rights of a person with these values. The highest role of all values counts, for the
 * apps of the values that give this role. Returns undefined if no value is mapped.
 */
export function rightsOf(values: readonly string[], map: RightsMap): Rights | undefined {
  const entries = [...new Set(values)].flatMap((value) =>
    Object.hasOwn(map, value) ? [map[value]] : [],
  );
  const role = operatorRoles.findLast((one) => entries.some((given) => given?.role === one));
  if (role === undefined) return undefined;
  const lists = entries.filter((given) => given?.role === role).map((given) => given?.apps ?? null);
  const apps = lists.includes(null) ? null : [...new Set(lists.flatMap((list) => list ?? []))];
  return { role, apps };
}
