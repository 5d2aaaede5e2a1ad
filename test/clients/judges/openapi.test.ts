import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { hasPrograms, minutesMs, pythonPackages, run } from '../../../ops/check/toolchains.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import { rounds, seed } from '../../fuzz/runs.ts';
import { testConfig } from '../../support/api.ts';
import { useTestService } from '../../support/service.ts';
import { signUp } from '../../support/users.ts';

/**
 * Tests the description of the API against a running service with Schemathesis (PyPI). It makes
 * valid and invalid calls of every operation with each kind of key, and validates the replies. `npm
 * run fuzz` makes more calls, with other seeds.
 */
const description = fileURLToPath(new URL('../../../docs/openapi.json', import.meta.url));

/** Checks that are left out, each with the reason. */
const excluded = [
  // `accepts_valid` in openapi.py knows the refusals that a schema cannot express.
  'positive_data_acceptance',
  // Schemathesis checks `Allow` for one path template. If two templates match (`/classes/_User` and
  // `/classes/{className}`), our header names the methods of both.
  'allow_header_conformance',
  // The keys of the run are sent with each call, even with calls from which Schemathesis removes
  // them.
  'missing_required_header',
];

/**
 * Operations that delete what the others need (the app, its keys, the session and the token of this
 * run), or that do not end (an event stream).
 */
const without =
  '^(streamEvents|deleteApp|rotateKey|rotateSecret|endConsoleSession|deleteConsoleSession|' +
  '(refreshSessionToken|updatePassword|deleteUser)(Alias)?)$';

const service = useTestService({ env: { TRUSTED_PROXIES: '1' } });
let folder: string;
let packages: string;
let app: App;
let token: string;

interface Report {
  readonly complete: boolean;
  readonly operations: { readonly selected: number; readonly tested: number };
  readonly test_cases: { readonly generated: number };
  readonly failures: unknown[];
  readonly errors: unknown[];
}

const ofApps = '^/(1\\.1|v1|2|callbacks|healthz|readyz|openapi)';
const kinds: [name: string, paths: string, headers: () => string[]][] = [
  ['the app key', ofApps, () => [`X-LC-Key:${app.appKey}`]],
  ['a session', ofApps, () => [`X-LC-Key:${app.appKey}`, `X-LC-Session:${token}`]],
  ['the master key', ofApps, () => [`X-LC-Key:${app.masterKey},master`]],
  [
    'the token of an operator',
    '^/console/',
    () => [`Authorization:Bearer ${testConfig(service.databaseUrl).adminToken}`],
  ],
];

describe.skipIf(!hasPrograms(['python3'], 'the judge of the API'))(
  'the API matches its description',
  () => {
    beforeAll(async () => {
      packages = await pythonPackages(new URL('requirements.txt', import.meta.url));
      folder = await mkdtemp(join(tmpdir(), 'carillon-judge-'));
      app = await service.api.createApp({ pushCallsPerMinute: 9600, allowUserQuery: true });
      await service.addApnsProfile(app);
      ({ token } = await signUp(service.api, app));
    }, minutesMs);
    afterAll(() => folder && rm(folder, { recursive: true }));

    test.each(kinds)(
      'for calls with %s',
      async (_, paths, headers) => {
        const file = join(folder, 'report.json');
        // The long run also makes one call for each keyword of each schema, which is 6,000 calls
        // per kind of key.
        const [phases, cases] = rounds >= 75 ? ['coverage,fuzzing', 10] : ['fuzzing', 2];
        const chosen = [...headers(), `X-LC-Id:${app.appId}`].flatMap((header) => [
          '--header',
          header,
        ]);
        const printed = await run(
          'python3',
          [
            ...[
              '-W',
              'ignore',
              join(packages, 'bin/schemathesis'),
              'run',
              description,
              '--url',
              service.api.url,
            ],
            ...['--include-path-regex', paths, '--exclude-operation-id-regex', without, ...chosen],
            ...[
              '--exclude-checks',
              excluded.join(),
              '--phases',
              phases,
              '--max-examples',
              String(cases),
            ],
            ...[
              '--seed',
              String(seed ?? 20261127),
              '--generation-database',
              'none',
              '--no-shrink',
              '--continue-on-failure',
            ],
            ...[
              '--workers',
              '1',
              '--suppress-health-check',
              'all',
              '--request-timeout',
              '30',
              '--no-color',
            ],
            ...['--report', 'json', '--report-json-path', file],
          ].map(String),
          {
            cwd: folder,
            env: {
              APP_ID: app.appId,
              PYTHONPATH: `${packages}:${fileURLToPath(new URL('.', import.meta.url))}`,
              SCHEMATHESIS_HOOKS: 'openapi',
            },
            acceptsFailure: true,
          },
        );
        const report: Report = JSON.parse(await readFile(file, 'utf8'));
        expect([...report.failures, ...report.errors], printed).toEqual([]);
        expect([report.complete, report.operations.tested]).toEqual([
          true,
          report.operations.selected,
        ]);
        expect(report.test_cases.generated).toBeGreaterThan(report.operations.selected);
      },
      // The long run takes minutes for each kind of key.
      rounds > 1 ? 10 * minutesMs : minutesMs,
    );
  },
);
