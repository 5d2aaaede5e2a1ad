import { z } from 'zod';
import { flagQuery } from '../../shared/domain/client-values.ts';
import { refusedAs } from './checked.ts';

/**
 * Returns the schema of the query parameters of a call that reads or writes objects
 * (protocol/queries.md#query-parameters). Other parameters are ignored. The services parse the
 * texts: conditions, lists of names, numbers.
 */
const parameters = <const S extends z.ZodRawShape>(shape: S) =>
  refusedAs(z.object(shape), { invalid: 'invalidQuery', isNamed: true });

const text = z.string().optional();
const flag = flagQuery;
const name = z.string().max(128);

/**
 * Returns the schema of a whole number in a query. Accepts digits only, because `Number` also
 * accepts 0x50 and blanks.
 */
export const wholeNumber = <S extends z.ZodType>(schema: S) =>
  z.preprocess(
    (value) => (typeof value === 'string' && /^\d{1,16}$/.test(value) ? Number(value) : value),
    schema,
  );

const where = text.describe(
  'Condition as JSON. A list of conditions means that all must hold. At most 64 KB.',
);
/** Accepts every text. A text that is not a number from 1 to 1,000 counts as 100. */
const limit = text.describe(
  'Number of objects: 1 to 1,000, and 0 with `count=1`. 100 by default and for any other value.',
);
const keys = text.describe('Members to return, separated by commas. `-name` excludes a member.');
const include = text.describe(
  'Pointers to replace by their objects, separated by commas. `a.b` includes a pointer inside ' +
    'an included object.',
);
const returnAcl = flag.describe('Replies contain `ACL`.');

const part = { keys, include };

/** Parameters of a list. */
const list = {
  where,
  limit,
  skip: wholeNumber(z.union([z.int().min(0), z.literal('')]).optional())
    .optional()
    .describe('Number of objects to skip.'),
  order: text.describe('Up to ten members, separated by commas. `-name` sorts descending.'),
  ...part,
  count: flag.describe('`1`: the reply contains the number of all matches.'),
};

/** Query of a list of installations. */
export const installationListQuery = parameters({ ...list, returnACL: returnAcl });
/** Query of a list of users. */
export const userListQuery = parameters({ ...list, returnACL: returnAcl });
/** Query of a list of roles. */
export const roleListQuery = parameters({
  ...userListQuery.shape,
  redirectClassNameForKey: z
    .enum(['users', 'roles'])
    .optional()
    .describe(
      'With `$relatedTo` in `where`: lists the members of this relation and names their class.',
    ),
});

/** Query of a read of one installation. */
export const installationReadQuery = parameters({ ...part, returnACL: returnAcl });
/** Query of a read of one user or role. */
export const objectReadQuery = parameters({ ...part, returnACL: returnAcl });

const fetching = {
  fetchWhenSave: flag.describe('The reply contains the new values.'),
  new: flag.describe('Same as `fetchWhenSave`.'),
};

/** Query of the creation of an object. */
export const createQuery = parameters(fetching);
/** Query of the update of an object. */
export const updateQuery = parameters({
  ...fetching,
  where: text.describe(
    'Condition as JSON that the object must match. Otherwise the call gets 305.',
  ),
});
/** Query of the deletion of objects. */
export const deleteQuery = parameters({ where: updateQuery.shape.where });

/** Query of a sign-up by a third-party account or by a number. */
export const signUpQuery = parameters({
  failOnNotExist: flag.describe(
    'If the account does not exist, returns 211 instead of creating it.',
  ),
});

/** Query of a read of the user that a session token belongs to. */
export const ownUserQuery = parameters({
  // Two tokens count as an unknown token.
  session_token: z
    .union([z.string(), z.array(z.string())])
    .optional()
    .describe('Session token, for clients that send no header.'),
});

/** Query of a scan of a class. */
export const scanQuery = parameters({
  where,
  limit,
  keys,
  scan_key: name
    .optional()
    .describe(
      'Sort order: `objectId` (default), `createdAt`, `updatedAt` or a member. `-name` sorts ' +
        'descending.',
    ),
  cursor: text.describe('`cursor` of the previous page. Valid for 10 minutes.'),
});

/** Query of a CQL statement. */
export const cqlQuery = parameters({
  cql: z.string().max(16_384).describe('`select` statement.'),
  pvalues: text.describe('Values of the placeholders `?`, as a JSON list.'),
});

/**
 * Returns whether the reply to a write contains the new values
 * (protocol/objects.md#replies-with-values). The JavaScript SDK sends `new`, other SDKs send
 * `fetchWhenSave`.
 */
export const isFetching = ({ fetchWhenSave, new: isNew }: z.infer<typeof createQuery>): boolean =>
  fetchWhenSave === true || isNew === true;
