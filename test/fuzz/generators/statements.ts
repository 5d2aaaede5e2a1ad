import fc from 'fast-check';
import { member } from './conditions.ts';
import { name, number, text, value } from './values.ts';

const literal = fc.oneof(
  fc.constantFrom(
    '1',
    '-1.5',
    '1e400',
    "'x'",
    '"x"',
    "'",
    "''",
    'true',
    'null',
    '?',
    "date('2020-01-01')",
    '[1,2]',
  ),
  fc.constantFrom(
    "pointer('_User','x')",
    'geopoint(0,0)',
    '(1,2)',
    '[0,0]',
    '()',
    "('a')",
    "'\\u0000'",
    '{"a":1}',
  ),
  text.map((given) => `'${given}'`),
  number.map(String),
);
const comparison = fc
  .tuple(
    fc.oneof(member, fc.constantFrom('pointer', 'select', 'ACL')),
    fc.constantFrom(
      '=',
      '!=',
      '<>',
      '<',
      '<=',
      '>',
      '>=',
      ' like ',
      ' in ',
      ' not in ',
      ' is ',
      ' is not ',
      ' all ',
    ),
    literal,
  )
  .map((parts) => parts.join(''));
const special = fc.constantFrom(
  ...[
    'a is exists',
    'a is not exists',
    'a near [0,0] max 1 km',
    'a near geopoint(0,0) min 1 miles max 2 radians',
  ],
  ...[
    'a within [0,0] and [1,1]',
    "a regexp '(' ",
    'a in (select objectId from _User where b=1)',
    'a = (select x)',
  ],
  ...[
    'a in (select a from _User limit 1,2)',
    'related by a to pointer(b,c)',
    'a size 1',
    "a startswith 'x'",
  ],
  ...[
    "related to users from pointer('_Role', 'x')",
    'related to roles from ?',
    "users = pointer('_User', 'x')",
  ],
);
const cqlCondition = fc.letrec<{ all: string }>((tie) => ({
  all: fc.oneof(
    { maxDepth: 3 },
    { weight: 3, arbitrary: comparison },
    { weight: 2, arbitrary: special },
    {
      weight: 2,
      arbitrary: fc
        .tuple(tie('all'), fc.constantFrom(' and ', ' or ', ' xor ', ' '), tie('all'))
        .map((p) => p.join('')),
    },
    { weight: 1, arbitrary: tie('all').map((inner) => `(${inner})`) },
  ),
})).all;

const tail = fc.constantFrom(
  ...[
    '',
    ' limit 10',
    ' limit 1,2',
    ' limit -1',
    ' limit 99999999999999999999',
    ' skip 5',
    ' order by a',
    ';',
  ],
  ...[
    ' order by a desc, b asc',
    ' order by',
    ' limit ?',
    ' group by a',
    ' union select 1',
    ' -- x',
    ' /* x */',
  ],
);
const statement = fc
  .tuple(
    fc.constantFrom('select ', 'SELECT ', 'insert into ', 'update ', 'delete from ', ''),
    fc.constantFrom(
      '*',
      'count(*)',
      'a,b',
      '*, count(*)',
      'include a, *',
      '-a',
      'count(a)',
      '',
      '*,',
      '.',
    ),
    fc.oneof(
      fc.constantFrom(' from _User', ' from _Installation', ' from _Role', ' from x', ''),
      name.map((n) => ` from ${n}`),
    ),
    fc
      .option(cqlCondition, { nil: '' })
      .map((condition) => (condition === '' ? '' : ` where ${condition}`)),
    tail,
  )
  .map((parts) => parts.join(''));

/** CQL statements. Some are truncated, some contain an inserted text. */
export const cql: fc.Arbitrary<string> = fc.oneof(
  { weight: 6, arbitrary: statement },
  {
    weight: 1,
    arbitrary: fc.tuple(statement, fc.nat(80)).map(([whole, at]) => whole.slice(0, at)),
  },
  {
    weight: 1,
    arbitrary: fc
      .tuple(statement, fc.nat(80), text)
      .map(([whole, at, more]) => whole.slice(0, at) + more + whole.slice(at)),
  },
  { weight: 1, arbitrary: text },
);

/** Values for the placeholders of a statement. */
export const placeholders: fc.Arbitrary<unknown> = fc.oneof(
  fc.array(value, { maxLength: 3 }),
  value,
);
