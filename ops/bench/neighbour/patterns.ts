/** HTTP call of the hostile app. The worker thread adds the host and the keys. */
export interface HostileCall {
  method: 'GET' | 'PUT' | 'POST';
  path: string;
  body?: string;
}

/** Calls that use as much of the service as an app key allows. */
export interface Pattern {
  name: string;
  calls: HostileCall[];
}

/** Ids of the rows that the calls use. */
export interface Targets {
  devices: string[];
}

const list = (className: string, query: Record<string, string | object>): HostileCall => ({
  method: 'GET',
  path: `/1.1/classes/${className}?${new URLSearchParams(
    Object.entries(query).map(([name, value]): [string, string] => [
      name,
      typeof value === 'string' ? value : JSON.stringify(value),
    ]),
  )}`,
});

/**
 * Returns a pattern for which PostgreSQL creates a new state at every letter of a text of a and b.
 */
const slowRegex = (n: number) => ({ $regex: `^(a|b)*a(a|b){${n}}c` });

const times = <T>(count: number, make: (i: number) => T): T[] =>
  Array.from({ length: count }, (_, i) => make(i));

/** Query with the maximum number of conditions without an index. */
const deepOr = {
  $or: times(10, (i) => ({
    $or: times(30, (j) => ({
      $and: [{ level: { $gt: 1000 + i * j } }, { city: { $ne: `c${j}` } }],
    })),
  })),
};

const beijing = { __type: 'GeoPoint', latitude: 39.9, longitude: 116.4 };

/** Wraps a call in a batch, because the body of a batch may be larger than a URL. */
function inBatch(count: number, { method, path }: HostileCall): HostileCall {
  const { pathname, searchParams } = new URL(path, 'http://any');
  const item = { method, path: pathname, params: Object.fromEntries(searchParams) };
  return {
    method: 'POST',
    path: '/1.1/batch',
    body: JSON.stringify({ requests: times(count, () => item) }),
  };
}

export function hostilePatterns({ devices }: Targets): Pattern[] {
  const costly = list('_Installation', {
    where: { text: { $regex: '(a|b)*c' }, level: { $ne: -1 } },
  });
  return [
    {
      name: 'conditional PUTs with patterns',
      calls: devices.slice(0, 20).map((id, i) => ({
        method: 'PUT',
        path: `/1.1/installations/${id}?where=${encodeURIComponent(
          JSON.stringify({ $or: times(10, (n) => ({ long: slowRegex(100 + ((i + n) % 50)) })) }),
        )}`,
        body: '{"touched":1}',
      })),
    },
    {
      name: 'conditional and plain PUTs of one row',
      calls: times(10, (i) => ({
        method: 'PUT',
        path: `/1.1/installations/${devices[0]}${
          i === 0 ? `?where=${encodeURIComponent(JSON.stringify({ long: slowRegex(150) }))}` : ''
        }`,
        body: '{"touched":1}',
      })),
    },
    {
      name: 'include of large rows, too many',
      calls: [list('_Installation', { where: { owned: 1 }, include: 'owner', limit: '1000' })],
    },
    {
      name: 'include of large rows, just allowed',
      calls: [list('_Installation', { where: { owned: 1 }, include: 'owner', limit: '35' })],
    },
    {
      name: 'lists of large rows',
      calls: [list('_User', { limit: '35' }), list('_User', { limit: '1000' })],
    },
    {
      name: 'deep $or without an index',
      calls: [inBatch(1, list('_Installation', { where: deepOr, count: '1' }))],
    },
    {
      name: 'count, skip and order',
      calls: [
        list('_Installation', {
          where: { text: { $exists: true } },
          order: 'text,-level,city',
          skip: '99000',
          count: '1',
        }),
        {
          method: 'GET',
          path: `/1.1/cloudQuery?cql=${encodeURIComponent(
            "select count(*), * from _Installation where text like '%aba%bab%zz%' order by level limit 90000, 10",
          )}`,
        },
      ],
    },
    {
      name: '$in and $nin of a thousand',
      calls: [
        list('_Installation', {
          where: {
            text: { $nin: times(400, (i) => `t${i}`) },
            level: { $nin: times(400, (i) => -i) },
          },
          order: 'text',
        }),
        list('_Installation', {
          where: { text: { $in: times(400, (i) => `no ${i}`) } },
          count: '1',
        }),
      ],
    },
    {
      name: 'distance without an index',
      calls: [
        list('_Installation', {
          where: { at: { $nearSphere: beijing } },
          skip: '50000',
          limit: '1000',
        }),
      ],
    },
    {
      name: 'batches of queries',
      calls: [inBatch(200, costly)],
    },
    {
      name: 'pushes to a costly where',
      calls: [
        {
          method: 'POST',
          path: '/1.1/push',
          body: JSON.stringify({
            data: { alert: 'x' },
            where: { text: { $regex: '^(a|b)*a(a|b){60}c' } },
          }),
        },
      ],
    },
  ];
}
