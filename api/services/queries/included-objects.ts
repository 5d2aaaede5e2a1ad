import { replyBytes } from '../../../shared/db/limits/query-limits.ts';
import type { Handle } from '../../../shared/db/pool.ts';
import { findInstallations } from '../../../shared/db/tables/installations.ts';
import { findRoles } from '../../../shared/db/tables/roles.ts';
import { findUsers } from '../../../shared/db/tables/users.ts';
import { aclOf, installationDocument } from '../../../shared/domain/installations/installation.ts';
import { mayUser } from '../../../shared/domain/objects/acl.ts';
import { roleDocument } from '../../../shared/domain/roles/role.ts';
import { userDocument } from '../../../shared/domain/users/user.ts';
import type { IncludeSource } from '../../../shared/query/list/include.ts';
import { installationClass, roleClass, userClass } from '../../../shared/query/schema.ts';
import type { UserCaller } from '../accounts/caller.ts';

/**
 * Returns a source that loads the objects of pointers (`include`, protocol/queries.md#include). It
 * returns each object as a GET by this caller would, so that a pointer cannot bypass an ACL.
 */
export function includeSourceFor(
  { app: { appId }, isMaster, session }: UserCaller,
  { db, hasAcl }: { db: Handle; hasAcl: boolean },
): IncludeSource {
  const maxBytes = replyBytes({ isMaster });
  const find: IncludeSource['find'] = async (className, objectIds) => {
    if (className === installationClass.name) {
      const found = await findInstallations(db, appId, { objectIds: [...objectIds], maxBytes });
      const visible = found.filter((one) => isMaster || mayUser(aclOf(one), 'read', session));
      return new Map(
        visible.map((one) => [
          one.objectId,
          installationDocument(one, { hasAcl, hasSubscription: isMaster }),
        ]),
      );
    }
    if (className === roleClass.name) {
      const found = await findRoles(db, appId, { objectIds: [...objectIds], maxBytes });
      const visible = found.filter(({ acl }) => isMaster || mayUser(acl, 'read', session));
      return new Map(visible.map((role) => [role.objectId, roleDocument(role, { hasAcl })]));
    }
    if (className !== userClass.name) return new Map();
    const found = await findUsers(db, appId, { objectIds: [...objectIds], maxBytes });
    const visible = found.filter(({ acl }) => isMaster || mayUser(acl, 'read', session));
    return new Map(
      visible.map((user) => {
        const isOwn = isMaster || session?.id === user.id;
        return [user.objectId, userDocument(user, { isOwn, hasAcl })];
      }),
    );
  };
  return { find, maxLength: maxBytes };
}
