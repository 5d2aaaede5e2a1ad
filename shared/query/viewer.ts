import type { App } from '../domain/apps/app.ts';
import { refuse } from '../domain/errors/errors.ts';
import { type AclUser, subjectsOf } from '../domain/objects/acl.ts';
import type { ClassSchema } from './schema.ts';
import type { Params } from './sql/params.ts';

/** Use of a member's name in a condition. */
export interface MemberUse {
  className: string;
  /** First part of the name, as the client sent it. */
  member: string;
  /**
   * How the condition uses the member:
   *
   * - `whole`: it compares the member with one whole text.
   * - `spelling`: it uses a pattern, the order of texts, or sorts by the member. Many such queries
   *   can reveal the member's value.
   * - `other`: any other test.
   */
  use: 'whole' | 'spelling' | 'other';
  /** Text that the member is compared with. Present only for `whole`. */
  value?: string;
  /** True if the name is in a subquery. */
  isInner: boolean;
}

/**
 * Caller of a query, with the caller's read access. A subquery may read only what a list call of
 * its class returns. Otherwise a condition on one class could reveal values of another
 * (protocol/known-problems.md#field-oracles).
 */
export interface Viewer {
  appId: string;
  /** Names of the classes that the caller may list. */
  classes: ReadonlySet<string>;
  /** ACL subjects of the caller. Undefined for the master key, which ignores ACLs. */
  subjects: string[] | undefined;
  /**
   * Throws if the caller may not name these members. `parseWhere` calls it with all members of a
   * condition.
   */
  checkUses?: (uses: readonly MemberUse[]) => void;
}

const allClasses = new Set(['_User', '_Installation', '_Role']);

/**
 * Returns the viewer without restrictions. Used for the master key, and for conditions that were
 * already checked.
 */
export const masterViewer = (appId: string): Viewer => ({
  appId,
  classes: allClasses,
  subjects: undefined,
});

/**
 * Returns the viewer of a call. An app key may list the classes that the app's options allow, and
 * roles whose ACL allows it.
 */
export function viewerOf(
  app: App,
  caller: { isMaster: boolean; user?: AclUser | undefined },
): Viewer {
  if (caller.isMaster) return masterViewer(app.appId);
  const classes = new Set([
    ...(app.options.allowUserQuery ? ['_User'] : []),
    ...(app.options.allowInstallationQuery ? ['_Installation'] : []),
    '_Role',
  ]);
  return { appId: app.appId, classes, subjects: subjectsOf(caller.user) };
}

/** Throws error 403 if the viewer may not list the class. */
export function requireListAccess(viewer: Viewer, cls: ClassSchema): void {
  if (!viewer.classes.has(cls.name)) throw refuse('forbiddenFind');
}

/** Returns the SQL condition for the rows of a class that the viewer may read. */
export function visibleTo({ subjects }: Viewer, cls: ClassSchema, params: Params): string {
  const { acl } = cls;
  if (acl === undefined || subjects === undefined) return 'true';
  const isRole = (name: string) => name.startsWith('role:');
  const own = subjects.filter((name) => !isRole(name));
  const may = own.map((name) => `${acl} -> ${params.add(name)}::text -> 'read' = 'true'`);
  const roles = subjects.filter(isRole);
  // A user may have a thousand roles, and an ACL has few entries. So each entry is looked up among
  // the roles.
  if (roles.length > 0)
    may.push(`EXISTS (SELECT FROM jsonb_each(${acl}) AS entries (subject, permissions)
      WHERE subject = ANY(${params.add(roles)}::text[]) AND permissions -> 'read' = 'true')`);
  return `(${acl} IS NULL OR ${may.join(' OR ')})`;
}
