import fc from 'fast-check';

/** Values that clients may send by mistake or on purpose. All generators use them. */

/** Member names with a meaning in the service, JavaScript, SQL or JSON paths. */
export const name: fc.Arbitrary<string> = fc.oneof(
  fc.constantFrom(
    ...[
      'username',
      'email',
      'mobilePhoneNumber',
      'authData',
      'authData.github',
      'authData.a.b',
      'ACL',
    ],
    ...[
      'objectId',
      'sessionToken',
      'emailVerified',
      'createdAt',
      'fields',
      'app_id',
      'className',
      'where',
    ],
    ...[
      '__proto__',
      'constructor',
      'prototype',
      'toString',
      'hasOwnProperty',
      '__op',
      '__type',
      '__internalId',
    ],
    ...[
      '$where',
      '$or',
      '$and',
      '$nor',
      '$not',
      'a.b',
      'a.0',
      'a..b',
      '.',
      '',
      '_session_hash',
      '*',
      '-a',
    ],
    ...[
      'a"b',
      "a'b",
      'a\\',
      'a::text',
      "x'->>'y",
      'a\u0000',
      '\ud800',
      'é',
      'a b',
      'x'.repeat(300),
    ],
    ...['deviceToken', 'channels', 'installationId', 'badge', 'valid', 'a', 'b'],
  ),
  fc.string({ maxLength: 8, unit: 'binary' }),
);

const hostileTexts = [
  ...[
    '',
    ' ',
    'x',
    '\u0000',
    '\ud800',
    '\udc00x',
    '\ufeff',
    '\u202e',
    'é',
    '中',
    '😀',
    '\r\nX-A: b',
    '0',
    '-1',
  ],
  ...[
    "'; --",
    "' OR 1=1",
    '$1',
    '%',
    '%00',
    '\\',
    '"',
    '`',
    '$(1)',
    '{{a}}',
    '{{{a}}}',
    '<script>',
    '../..',
  ],
  ...[
    'a@b.cn',
    'a@b.cn\n',
    '+8613800000000',
    '13800000000',
    '+1',
    '1e400',
    'NaN',
    'null',
    'true',
    '[]',
    '{}',
  ],
  ...[
    '2020-01-01T00:00:00.000Z',
    '9999-12-31',
    '+275760-09-13T00:00:00.000Z',
    '-000001-01-01T00:00:00Z',
  ],
  ...['0000000000000000000000', 'ffffffffffffffffffffffff', 'x'.repeat(5000), '\u0000'.repeat(100)],
];
const hostileNumbers = [
  ...[
    0,
    -0,
    -1,
    1,
    0.5,
    1e308,
    -1e308,
    5e-324,
    2 ** 31,
    -(2 ** 31) - 1,
    2 ** 53,
    2 ** 63,
    1e21,
    1e-7,
    1000,
    1001,
  ],
];

export const text: fc.Arbitrary<string> = fc.oneof(
  fc.constantFrom(...hostileTexts),
  fc.string({ maxLength: 8, unit: 'binary' }),
  fc.string({ maxLength: 12 }),
);
export const number: fc.Arbitrary<number> = fc.oneof(
  fc.constantFrom(...hostileNumbers),
  fc.integer(),
);
const leaf = fc.oneof(fc.constantFrom(null, true, false, [], {}), text, number);

const operation = fc.record(
  {
    __op: fc.oneof(
      fc.constantFrom(
        'Delete',
        'Increment',
        'Decrement',
        'Add',
        'AddUnique',
        'Remove',
        'AddRelation',
      ),
      fc.constantFrom(
        'RemoveRelation',
        'BitAnd',
        'BitOr',
        'BitXor',
        'Batch',
        'SetOnInsert',
        5,
        null,
      ),
    ),
    amount: leaf,
    objects: fc.oneof(leaf, fc.array(leaf, { maxLength: 3 })),
    value: leaf,
    ops: leaf,
  },
  { requiredKeys: ['__op'] },
);

/** Typed values: complete, with members of a wrong type, or with missing members. */
const typed = fc.oneof(
  fc.record({
    __type: fc.constant('Date'),
    iso: fc.oneof(fc.constant('2020-01-01T00:00:00.000Z'), leaf),
  }),
  fc.record({
    __type: fc.constant('Pointer'),
    className: fc.oneof(fc.constantFrom('_User', '_Installation', '_Role'), leaf),
    objectId: leaf,
  }),
  fc.record(
    { __type: fc.constant('GeoPoint'), latitude: leaf, longitude: leaf },
    { requiredKeys: ['__type'] },
  ),
  fc.record({ __type: fc.constant('Bytes'), base64: fc.oneof(fc.constant('AA=='), leaf) }),
  fc.record({ __type: fc.constant('Relation'), className: leaf }),
  fc.record({
    __type: fc.constantFrom('File', 'Object', 'constructor', '__proto__', 7),
    id: leaf,
    url: leaf,
  }),
);

/** Creates a dictionary in which `__proto__` is an ordinary member. */
export const dictionaryOf = (entries: [string, unknown][]): Record<string, unknown> =>
  Object.fromEntries(entries);

/** Any JSON value. */
export const { value } = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    leaf,
    operation,
    typed,
    fc.array(tie('value'), { maxLength: 3 }),
    fc.array(fc.tuple(name, tie('value')), { maxLength: 3 }).map(dictionaryOf),
    fc.record({ $ne: leaf, $regex: leaf, $in: leaf }, { requiredKeys: [] }),
    fc.record(
      { uid: leaf, access_token: leaf, unionid: leaf, platform: leaf },
      { requiredKeys: [] },
    ),
  ),
}));

/** One to five members with hostile names and values. */
export const members = fc
  .array(fc.tuple(name, value), { minLength: 1, maxLength: 5 })
  .map((entries) => dictionaryOf(entries));

const nested = (open: string, close: string, depth: number) =>
  open.repeat(depth) + close.repeat(depth);

/** Bodies that no schema accepts: not JSON, no dictionary, too deep, too long, not text. */
export const rawBody: fc.Arbitrary<Buffer> = fc.oneof(
  fc
    .constantFrom(
      ...[
        '',
        ' ',
        'null',
        '[]',
        '[{}]',
        '""',
        '0',
        'true',
        '{',
        '{"a":',
        '{"a":1}x',
        '{"a":1,"a":2}',
        "{'a':1}",
      ],
      ...[
        '\ufeff{}',
        '{"\\u0000":1}',
        '{"a":"\\ud800"}',
        '{"a":1e999}',
        '{"a":-0}',
        'a=b&c=d',
        'a=%ff',
        '--x--',
      ],
      ...[
        '{"__proto__":{"polluted":1}}',
        '{"constructor":{"prototype":{"polluted":1}}}',
        `{"a":${'9'.repeat(400)}}`,
      ],
      ...[`{"a":${nested('[', ']', 99)}}`],
      ...[
        `{"where":${nested('{"$or":[', ']}', 45)}}`,
        `{"a":${nested('[', ']', 3000)}}`,
        nested('{"a":', '}', 3000),
        `{"requests":${nested('[', ']', 50_000)}}`,
      ],
      `{${Array.from({ length: 3000 }, (_, i) => `"m${i}":1`).join(',')}}`,
    )
    .map((given) => Buffer.from(given)),
  fc.uint8Array({ maxLength: 60 }).map((bytes) => Buffer.from(bytes)),
  fc.json({ maxDepth: 4 }).map((json) => Buffer.from(json)),
);
