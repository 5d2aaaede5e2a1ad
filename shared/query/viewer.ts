import type { App } from '../domain/apps/app.ts';
import { refuse } from '../domain/errors/errors.ts';
import { type AclUser, subjectsOf } from '../domain/objects/acl.ts';
import type { ClassSchema } from './schema.ts';
import type { Params } from './sql/params.ts';

/** One place of a condition that names a member of a class. */
export interface MemberUse {
  className: string;
  /** First part of the name, as it was sent. */
  member: string;
  /**
   * `whole`: compared with one whole text. `spelling`: compared by a pattern or by the order of
   * texts, so that repeated questions spell its value; also the order of a query. `other`: any
   * other test.
   */
  use: 'whole' | 'spelling' | 'other';
  /** Text that `whole` compares with. */
  value?: string;
  /** The place is in a query within the condition. */
  isInner: boolean;
}

/**
 * Caller of a query, with its read access. A subquery reads no more than a list call of its class;
 * otherwise a condition on one class could reveal another
 * (protocol/known-problems.md#field-oracles).
 */
export interface Viewer {
  appId: string;
  /** Names of the classes that the caller may list. */
  classes: ReadonlySet<string>;
  /** ACL subjects of the caller; undefined for the master key, which ignores ACLs. */
  subjects: string[] | undefined;
  /**
   * Throws if the caller may not name these members. `parseWhere` calls it with all members of a
   * condition.
   */
  permit?: (uses: readonly MemberUse[]) => void;
}

const allClasses = new Set(['_User', '_Installation', '_Role']);

/**
 * Returns the viewer without restrictions: for the master key, and for conditions that were checked
 * before.
 */
export const masterViewer = (appId: string): Viewer => ({
  appId,
  classes: allClasses,
  subjects: undefined,
});

/**
 * Returns the viewer of a call. An app key lists the classes that the app's options allow, and
 * roles by their ACLs.
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

/** Throws 403 unless the viewer may list the class. */
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
  // A user may have a thousand roles and an ACL has few entries, so look up each entry among the
  // roles.
  if (roles.length > 0)
    may.push(`EXISTS (SELECT FROM jsonb_each(${acl}) AS entries (subject, permissions)
      WHERE subject = ANY(${params.add(roles)}::text[]) AND permissions -> 'read' = 'true')`);
  return `(${acl} IS NULL OR ${may.join(' OR ')})`;
}
