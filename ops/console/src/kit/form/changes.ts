type Members = Record<string, unknown>;

/** Members that the server writes. */
const readOnly = new Set(['objectId', 'createdAt', 'updatedAt', 'installationId', 'sessionToken']);

/** Returns the members of a document that a person may change. */
export const editableOf = (document: Members): Members =>
  Object.fromEntries(Object.entries(document).filter(([name]) => !readOnly.has(name)));

/** Returns the body that makes one state of a document the other: changed members, and a deletion of those that are gone. */
export function changesOf(before: Members, after: Members): Members {
  const changed = Object.entries(after).filter(
    ([name, value]) => !readOnly.has(name) && JSON.stringify(value) !== JSON.stringify(before[name]),
  );
  const gone = Object.keys(before).filter((name) => !(name in after));
  return Object.fromEntries([...changed, ...gone.map((name) => [name, { __op: 'Delete' }])]);
}
