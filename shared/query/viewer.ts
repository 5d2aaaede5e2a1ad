import type { App } from '../domain/apps/app.ts';
import { refuse } from '../domain/errors/errors.ts';
import { type AclUser, subjectsOf } from '../domain/objects/acl.ts';
import type { ClassSchema } from './schema/fields.ts';
import type { Params } from './sql/params.ts';

/**
 * For whom a query is answered. A sub-query shows no more than a list call of its class would: else a condition on
 * one class were a way to read another (protocol/known-problems.md#field-oracles).
 */
export interface Viewer {
  appId: string;
  /** Names of the classes whose rows may be asked for. */
  classes: ReadonlySet<string>;
  /** Whose entries in an ACL count; undefined: nothing is kept from the master key. */
  subjects: string[] | undefined;
}

const allClasses = new Set(['_User', '_Installation', '_Role']);

/** The reader that sees everything: the master key, and whatever was admitted before. */
export const masterViewer = (appId: string): Viewer => ({ appId, classes: allClasses, subjects: undefined });

/** The app key, with a user's session or without: what the app's options open, and roles as far as ACLs show them. */
export function viewerOf(app: App, caller: { isMaster: boolean; user?: AclUser | undefined }): Viewer {
  if (caller.isMaster) return masterViewer(app.appId);
  const classes = new Set([
    ...(app.options.allowUserQuery ? ['_User'] : []),
    ...(app.options.allowInstallationQuery ? ['_Installation'] : []),
    '_Role',
  ]);
  return { appId: app.appId, classes, subjects: subjectsOf(caller.user) };
}

/** Throws 403. */
export function requireListAccess(viewer: Viewer, cls: ClassSchema): void {
  if (!viewer.classes.has(cls.name)) throw refuse('forbiddenFind');
}

/** Condition over the rows of a class that the reader may see. */
export function visibleTo({ subjects }: Viewer, cls: ClassSchema, params: Params): string {
  if (!cls.hasAcl || subjects === undefined) return 'true';
  const isRole = (name: string) => name.startsWith('role:');
  const own = subjects.filter((name) => !isRole(name));
  const may = own.map((name) => `acl -> ${params.add(name)}::text -> 'read' = 'true'`);
  const roles = subjects.filter(isRole);
  // A user may have a thousand roles, and an ACL has few entries: those are looked up, not the other way round.
  if (roles.length > 0)
    may.push(`EXISTS (SELECT FROM jsonb_each(acl) AS entries (subject, permissions)
      WHERE subject = ANY(${params.add(roles)}::text[]) AND permissions -> 'read' = 'true')`);
  return `(acl IS NULL OR ${may.join(' OR ')})`;
}
