import { createHash } from 'node:crypto';
import fc from 'fast-check';
import type { Route } from '../../../api/route.ts';
import type { App } from '../../../shared/domain/apps/app.ts';

/** Apps with their keys, and existing ids, for requests. */
export interface Targets {
  /** App of public calls. */
  app: App;
  /** App whose function host is unreachable. */
  hostless: App;
  /** App of admin calls, which change and delete it. */
  managed: App;
  adminToken: string;
  sessionToken: string;
  /**
   * Values of path parameters by name. `any` is for other parameters, `doomed` for an app that a
   * request may delete.
   */
  ids: Record<string, string[]>;
  /** Secrets that only callers with the master key or the admin token may read. */
  secrets: string[];
}

/**
 * Reads a value when the request is generated, because users and devices are renewed between
 * requests.
 */
const lazy = <T>(get: () => T): fc.Arbitrary<T> => fc.constant(null).map(get);

/** Text that is valid in an HTTP header. */
const headerText = fc.string({
  maxLength: 20,
  unit: fc
    .integer({ min: 33, max: 255 })
    .map((code) => (code === 127 ? ' ' : String.fromCharCode(code))),
});

const signOf = (key: string, isMaster: boolean) => {
  const timestamp = '1700000000000';
  const digest = createHash('md5').update(timestamp).update(key).digest('hex');
  return `${digest},${timestamp}${isMaster ? ',master' : ''}`;
};

function keysOf(app: App): fc.Arbitrary<Record<string, string>> {
  const id = { 'X-LC-Id': app.appId };
  return fc.oneof(
    { weight: 8, arbitrary: fc.constant({ ...id, 'X-LC-Key': app.appKey }) },
    { weight: 8, arbitrary: fc.constant({ ...id, 'X-LC-Key': `${app.masterKey},master` }) },
    { weight: 2, arbitrary: fc.constant({ ...id, 'X-LC-Sign': signOf(app.appKey, false) }) },
    { weight: 2, arbitrary: fc.constant({ ...id, 'X-LC-Sign': signOf(app.masterKey, true) }) },
    { weight: 1, arbitrary: headerText.map((sign) => ({ ...id, 'X-LC-Sign': sign })) },
    { weight: 1, arbitrary: headerText.map((key) => ({ ...id, 'X-LC-Key': key })) },
    {
      weight: 1,
      arbitrary: headerText.map((appId) => ({ 'X-LC-Id': appId, 'X-LC-Key': app.masterKey })),
    },
    {
      weight: 1,
      arbitrary: fc.constant({ ...id, 'X-LC-Hook-Key': app.hookKey, 'X-LC-Key': app.appKey }),
    },
    { weight: 1, arbitrary: fc.constant({}) },
  );
}

export function credentialsFor(
  route: Route,
  targets: Targets,
): fc.Arbitrary<Record<string, string>> {
  if (route.auth === 'admin')
    return fc.oneof(
      { weight: 15, arbitrary: fc.constant({ Authorization: `Bearer ${targets.adminToken}` }) },
      { weight: 1, arbitrary: headerText.map((token) => ({ Authorization: `Bearer ${token}` })) },
      { weight: 1, arbitrary: keysOf(targets.app) },
    );
  const app = fc.oneof(
    { weight: 9, arbitrary: keysOf(targets.app) },
    { weight: 1, arbitrary: keysOf(targets.hostless) },
  );
  const session = fc.oneof(
    { weight: 3, arbitrary: fc.constant({}) },
    { weight: 3, arbitrary: lazy(() => ({ 'X-LC-Session': targets.sessionToken })) },
    { weight: 1, arbitrary: headerText.map((token) => ({ 'X-LC-Session': token })) },
  );
  return fc.tuple(app, session).map(([keys, token]) => ({ ...keys, ...token }));
}

export const otherHeaders: fc.Arbitrary<Record<string, string>> = fc.record(
  {
    'X-LC-Prod': fc.oneof(fc.constantFrom('0', '1', 'true', 'false'), headerText),
    'Accept-Language': fc.oneof(fc.constantFrom('zh-CN', '*;q=0'), headerText),
    Origin: fc.oneof(fc.constantFrom('null', 'https://a.example'), headerText),
    'X-Forwarded-For': fc.oneof(fc.ipV4(), fc.ipV6(), headerText),
    'X-Forwarded-Host': headerText,
    'X-HTTP-Method-Override': fc.constantFrom('DELETE', 'PUT'),
    'User-Agent': headerText,
    Accept: headerText,
    'If-None-Match': fc.constant('*'),
    Range: fc.constant('bytes=0-0'),
  },
  { requiredKeys: ['X-Forwarded-For'] },
);
