import fc from 'fast-check';
import { dictionaryOf, name, number, value } from './values.ts';

/** Query conditions: mostly well formed, with hostile names, operands and depths. */

const columns = [
  ...[
    'objectId',
    'createdAt',
    'updatedAt',
    'username',
    'email',
    'emailVerified',
    'mobilePhoneNumber',
    'authData',
  ],
  ...[
    'sessionToken',
    'password',
    'ACL',
    'deviceType',
    'deviceToken',
    'channels',
    'badge',
    'valid',
    'timeZone',
  ],
  ...['vendor', 'installationId', 'fields', 'a', 'a.b', 'owner'],
  ...['name', 'users', 'roles'],
];
export const member = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom(...columns) },
  { weight: 1, arbitrary: name },
);

const point = fc.record({
  __type: fc.constant('GeoPoint'),
  latitude: fc.double({ min: -90, max: 90, noNaN: true }),
  longitude: fc.double({ min: -180, max: 180, noNaN: true }),
});
const date = fc
  .constantFrom('2020-01-01T00:00:00.000Z', '1500-01-01T00:00:00.000Z', '9999-12-31T23:59:59.999Z')
  .map((iso) => ({ __type: 'Date', iso }));

const patterns = [
  ...[
    'x',
    '^x',
    '^\\Qx\\E',
    '',
    '(',
    '[',
    '[]',
    '[^]',
    'a{1,2}',
    'a{99999}',
    '(a+)+$',
    '(?=x)*',
    '(?<n>x)\\k<n>',
  ],
  ...[
    '\\',
    '\\u0000',
    '\\x00',
    '[[:alpha:]]',
    '***:x',
    '***=x',
    '(?i)x',
    '\\p{L}',
    '(?!)',
    '\\1',
    '(x)\\1',
    '$^',
  ],
  ...[
    '[z-a]',
    'x**',
    '?',
    '|',
    '\\Q',
    '\\B',
    '\\d+(?:\\.\\d+)?',
    '.{0,255}',
    '(x|y){0,255}',
    '\\cA',
    '[\\b]',
  ],
];
const pattern = fc.oneof(
  fc.constantFrom(...patterns),
  fc.string({
    maxLength: 10,
    unit: fc.constantFrom(...'()[]{}*+?|\\^$.-,:=!<>aQE1dsbBwW'.split('')),
  }),
);

const relation = fc.constantFrom('$lt', '$lte', '$gt', '$gte', '$ne', '$eq');
const listOperator = fc.constantFrom('$in', '$nin', '$all');
const strange = fc.constantFrom(
  '$where',
  '$text',
  '$not',
  '$nor',
  '$type',
  '$',
  '$a',
  '__proto__',
  '$Regex',
);

const simpleTest = fc.oneof(
  value,
  fc.record({
    __type: fc.constant('Pointer'),
    className: fc.constantFrom('_User', '_Role'),
    objectId: fc.constant('x'),
  }),
  fc.tuple(relation, fc.oneof(value, date)).map((entry) => dictionaryOf([entry])),
  fc
    .tuple(listOperator, fc.oneof(value, fc.array(value, { maxLength: 4 })))
    .map((entry) => dictionaryOf([entry])),
  fc.record({ $size: number }),
  fc.record({ $exists: fc.oneof(fc.boolean(), value) }),
  fc.record({
    $regex: pattern,
    $options: fc.oneof(fc.constantFrom('', 'i', 'm', 'im', 'x', 'ii'), value),
  }),
  fc.record({ $regex: fc.oneof(pattern, value) }),
  fc.record({ $nearSphere: fc.oneof(point, value), $maxDistanceInKilometers: number }),
  fc.record({
    $nearSphere: point,
    $minDistance: number,
    $maxDistanceInMiles: fc.oneof(number, value),
  }),
  fc.record({ $within: fc.record({ $box: fc.oneof(fc.tuple(point, point), value) }) }),
  fc.tuple(strange, value).map((entry) => dictionaryOf([entry])),
);

const className = fc.oneof(
  { weight: 5, arbitrary: fc.constantFrom('_User', '_Installation', '_Role') },
  { weight: 1, arbitrary: name },
);

const pointer = fc.record({
  __type: fc.constant('Pointer'),
  className,
  objectId: fc.constantFrom('x', '$', 5),
});
const related = fc.oneof(
  fc.record({ object: pointer, key: fc.constantFrom('users', 'roles', 'name', 'constructor') }),
  fc.record(
    { object: fc.oneof(pointer, value), key: fc.oneof(member, value) },
    { requiredKeys: [] },
  ),
);

/** Values of `where`: a dictionary or a list of dictionaries, rarely another value. */
export const { where } = fc.letrec<{
  where: unknown;
  part: unknown;
  test: unknown;
  query: unknown;
}>((tie) => ({
  where: fc.oneof(
    { weight: 8, arbitrary: tie('part') },
    { weight: 1, arbitrary: fc.array(tie('part'), { maxLength: 2 }) },
    { weight: 1, arbitrary: value },
  ),
  part: fc.oneof(
    { maxDepth: 3 },
    {
      weight: 4,
      arbitrary: fc.array(fc.tuple(member, tie('test')), { maxLength: 3 }).map(dictionaryEntries),
    },
    { weight: 1, arbitrary: fc.record({ $or: fc.array(tie('part'), { maxLength: 3 }) }) },
    { weight: 1, arbitrary: fc.record({ $and: fc.array(tie('part'), { maxLength: 3 }) }) },
    { weight: 1, arbitrary: fc.record({ $relatedTo: related }) },
  ),
  test: fc.oneof(
    { maxDepth: 3 },
    { weight: 9, arbitrary: simpleTest },
    {
      weight: 2,
      arbitrary: fc
        .tuple(fc.constantFrom('$inQuery', '$notInQuery'), tie('query'))
        .map((entry) => dictionaryOf([entry])),
    },
    {
      weight: 1,
      arbitrary: fc
        .tuple(
          fc.constantFrom('$select', '$dontSelect'),
          fc.record({ key: member, query: tie('query') }),
        )
        .map((entry) => dictionaryOf([entry])),
    },
  ),
  query: fc.record(
    {
      className,
      where: tie('where'),
      limit: number,
      skip: number,
      order: member,
      keys: member,
      include: member,
    },
    { requiredKeys: ['className', 'where'] },
  ),
}));

function dictionaryEntries(entries: [string, unknown][]): Record<string, unknown> {
  return dictionaryOf(entries);
}
